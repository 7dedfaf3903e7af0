-- Creates a role unless the name is taken; returns the new row.
insert into laneway.roles (name, permissions, updated_by)
values (%(name)s::text, %(permissions)s::text[], %(by)s::text)
on conflict (name) do nothing
returning name, permissions, is_seeded, updated_at, updated_by
