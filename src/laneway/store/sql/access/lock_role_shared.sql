-- Reads a role, and blocks its deletion until the transaction ends.
select r.name, r.permissions, r.is_seeded, r.updated_at, r.updated_by
  from laneway.roles r where r.name = %(name)s::text for key share
