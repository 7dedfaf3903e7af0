-- The limits, their current holders, and the number of due jobs that need each, up to the bound.
select l.name, l.max_concurrent, l.rate_count, l.rate_period_s, l.scope, l.updated_at, l.updated_by,
       u.running, u.busiest, w.waiting
  from laneway.limits l
 cross join lateral (
    select coalesce(sum(s.running), 0)::integer as running, coalesce(max(s.running), 0)::integer as busiest
      from (select sum(x.running) as running from laneway.limits_held x where x.limit_name = l.name
             group by case l.scope when 'host' then x.host when 'process' then x.worker_id::text end) s) u
 cross join lateral (
    select count(*)::integer as waiting from (
        select from laneway.job_types t
         cross join lateral (select from laneway.ready r where r.job_type = t.name
                              limit %(bound)s::integer + 1) r
         where l.name = any (t.limits) limit %(bound)s::integer + 1) c) w
 where %(name)s::text is null or l.name = %(name)s::text
 order by l.name
