-- Changes queued jobs only; returns the state that it found.
-- Waits for a lock for at most lock_ms, if given; later statements of the transaction are not bound by it.
with bound as materialized (
    select current_setting('lock_timeout') as before
), short as materialized (
    select b.before, set_config('lock_timeout', coalesce(%(lock_ms)s::text, b.before), true) as lock_timeout from bound b
)
select x.found_in
  from (select r.found_in, set_config('lock_timeout', s.before, true)
          from short s
         cross join laneway.jobs j
         -- So that the bound is set first.
         cross join lateral laneway.reprioritize(case when s.lock_timeout is not null then j.seq end, %(priority)s::integer) r
         where j.id = %(id)s::uuid) x
