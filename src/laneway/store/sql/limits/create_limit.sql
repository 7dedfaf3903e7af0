-- Creates a limit unless the name is taken; never overwrites one. Returns the new row.
insert into laneway.limits (name, max_concurrent, rate_count, rate_period_s, scope, updated_by)
values (%(name)s::text, %(max_concurrent)s::integer, %(rate_count)s::integer, %(rate_period_s)s::double precision,
        %(scope)s::text, %(by)s::text)
on conflict (name) do nothing
returning name, max_concurrent, rate_count, rate_period_s, scope, updated_at, updated_by
