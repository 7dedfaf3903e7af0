-- Waiting jobs by reason: how many, counted up to p_bound, and how long the first of them has waited; null: none waits. By an
-- index that has this collation.
create or replace function laneway.measure_waiting(p_bound integer)
returns table (reason text, counted integer, oldest_s double precision)
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select r.reason,
           (select count(*) from (select from laneway.waiting w where w.reason collate "POSIX" = r.reason limit p_bound) x)::integer,
           (select extract(epoch from clock_timestamp() - w.since)::double precision from laneway.waiting w
             where w.reason collate "POSIX" = r.reason order by w.since limit 1)
      from unnest(array['jobs', 'sub_jobs', 'event', 'sleep']) as r (reason)
$$;

-- Flows with a job that has not ended, counted up to p_bound.
create or replace function laneway.count_open_flows(p_bound integer) returns integer
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select count(*)::integer from (select from laneway.flows f where f.is_open limit p_bound) x
$$;
