-- Creates a principal unless the name is taken; returns the new row.
insert into laneway.principals (id, name, kind, created_by)
values (%(id)s::uuid, %(name)s::text, %(kind)s::text, %(by)s::text)
on conflict (name) do nothing
returning id, name, kind, created_at, created_by, disabled_at
