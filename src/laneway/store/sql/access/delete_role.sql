-- Deletes a role unless it is seeded or granted.
delete from laneway.roles r
 where r.name = %(name)s::text and not r.is_seeded
   and not exists (select from laneway.role_grants g where g.role = r.name)
returning r.name
