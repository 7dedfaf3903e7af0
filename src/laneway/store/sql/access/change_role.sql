-- Replaces the permissions of a role that is not seeded; returns the changed row.
update laneway.roles r
   set permissions = %(permissions)s::text[], updated_by = %(by)s::text, updated_at = clock_timestamp()
 where r.name = %(name)s::text and not r.is_seeded
returning r.name, r.permissions, r.is_seeded, r.updated_at, r.updated_by
