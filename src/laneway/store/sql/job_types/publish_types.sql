-- Publishes what a worker knows of its job types; the newest publication wins, unchanged rows are not rewritten.
insert into laneway.job_types as t (name, arguments, lane, priority, max_retries, timeout_s, isolation, stale,
                                    retry_base_s, retry_cap_s, retry_factor, retry_jitter, limits, published_at)
select p.name, p.arguments::jsonb, p.lane, coalesce(p.priority, o.priority, 0), p.max_retries, p.timeout_s, p.isolation, p.stale,
       p.retry_base_s, p.retry_cap_s, p.retry_factor, p.retry_jitter, '{}', clock_timestamp()
  from unnest(%(names)s::text[], %(arguments)s::text[], %(lanes)s::text[], %(priorities)s::integer[],
              %(max_retries)s::integer[], %(timeouts)s::double precision[], %(isolations)s::text[],
              %(stales)s::text[], %(bases)s::double precision[], %(caps)s::double precision[],
              %(factors)s::double precision[], %(jitters)s::double precision[])
       as p (name, arguments, lane, priority, max_retries, timeout_s, isolation, stale, retry_base_s,
             retry_cap_s, retry_factor, retry_jitter)
  left join laneway.job_types o on o.name = p.name
 order by p.name
on conflict (name) do update
   set arguments = excluded.arguments, lane = excluded.lane, priority = excluded.priority,
       max_retries = excluded.max_retries, timeout_s = excluded.timeout_s, isolation = excluded.isolation,
       stale = excluded.stale, retry_base_s = excluded.retry_base_s, retry_cap_s = excluded.retry_cap_s,
       retry_factor = excluded.retry_factor, retry_jitter = excluded.retry_jitter, published_at = excluded.published_at
 where (t.arguments, t.lane, t.priority, t.max_retries, t.timeout_s, t.isolation, t.stale, t.retry_base_s,
        t.retry_cap_s, t.retry_factor, t.retry_jitter)
       is distinct from
       (excluded.arguments, excluded.lane, excluded.priority, excluded.max_retries, excluded.timeout_s,
        excluded.isolation, excluded.stale, excluded.retry_base_s, excluded.retry_cap_s, excluded.retry_factor,
        excluded.retry_jitter)
    or t.published_at is null
