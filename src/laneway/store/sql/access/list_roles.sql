-- Roles by name, after the given one.
select r.name, r.permissions, r.is_seeded, r.updated_at, r.updated_by
  from laneway.roles r
 where %(after)s::text is null or r.name > %(after)s::text
 order by r.name limit %(limit)s::integer
