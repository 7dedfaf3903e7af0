-- Principals by name, after the given one.
select p.id, p.name, p.kind, p.created_at, p.created_by, p.disabled_at
  from laneway.principals p
 where %(after)s::text is null or p.name > %(after)s::text
 order by p.name limit %(limit)s::integer
