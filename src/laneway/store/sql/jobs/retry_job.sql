-- Retries failed and cancelled jobs only; returns the state that it found. Waits for a lock for at most lock_ms, if given.
with bound as materialized (
    select set_config('lock_timeout', coalesce(%(lock_ms)s::text, current_setting('lock_timeout')), true) as lock_timeout
)
select r.found_in, r.wakes
  from bound b
 cross join laneway.jobs j
 -- So that the bound is set first.
 cross join lateral laneway.retry(case when b.lock_timeout is not null then j.seq end) r
 where j.id = %(id)s::uuid
