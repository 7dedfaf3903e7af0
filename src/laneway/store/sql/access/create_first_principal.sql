-- Creates a principal only if none exists; of two concurrent calls one succeeds.
insert into laneway.principals (id, name, kind, created_by)
select %(id)s::uuid, %(name)s::text, 'person', %(by)s::text
 where not exists (select from laneway.principals)
on conflict (name) do nothing
returning id, name, kind, created_at, created_by, disabled_at
