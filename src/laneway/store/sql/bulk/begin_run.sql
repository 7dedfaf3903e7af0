-- Starts a background run; deletes runs that began a month ago.
with forgotten as (
    delete from laneway.bulk_runs where started_at < clock_timestamp() - interval '30 days'
)
insert into laneway.bulk_runs (id, principal_id, ordered_by, verb)
values (%(id)s::uuid, %(principal)s::uuid, %(by)s::text, %(verb)s::text)
returning id, principal_id, ordered_by, verb, state, done, refused::text, started_at, updated_at
