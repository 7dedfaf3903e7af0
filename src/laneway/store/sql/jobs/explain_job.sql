-- Facts that decide whether one job can start, by the rules of the claim. `ahead` stops counting at the bound.
select j.job_type, k.lane, c.paused, c.paused_by, n.enabled, n.max_slots,
       (select coalesce(sum(u.running), 0) from laneway.slots_held u where u.lane = k.lane)::integer as slots_used,
       array(select h.id from laneway.lease l join laneway.jobs h on h.seq = l.seq
              where l.lane = k.lane and n.max_slots is not null
              order by l.claimed_at, l.seq limit %(holders)s::integer) as holders,
       -- Also of a job that waits for an approval or for other jobs.
       extract(epoch from coalesce(d.run_at, case when coalesce(w.seq, l.seq, q.seq) is null then j.run_at end)
                          - clock_timestamp())::double precision as due_in_s,
       s.ahead, s.can_run, s.limits::text,
       (select jsonb_object_agg(m.name, h.ids)::text
          from (select x ->> 'name' as name from jsonb_array_elements(s.limits) x) m
         cross join lateral (select jsonb_agg(y.id) as ids from (
            select b.id from laneway.lease l join laneway.jobs b on b.seq = l.seq
             where m.name = any (l.limits) order by l.claimed_at, l.seq limit %(holders)s::integer) y) h) as limit_holders,
       (select b.id from laneway.jobs b where b.seq = s.key_holder) as key_holder, s.key_waits,
       (select count(*) from (select from laneway.key_waiters w join laneway.key_waiters me on me.seq = j.seq
                               where w.workspace = me.workspace and w.concurrency_key = me.concurrency_key
                                 and (w.rank, w.seq) < (me.rank, me.seq) limit %(bound)s::integer + 1) x)::integer as key_ahead,
       extract(epoch from clock_timestamp() - l.lease_until)::double precision as lapsed_s,
       l.lease_until, l.lease_seconds,
       -- A leader, or a possible next one, that has reported lately. The silent worker itself does not count.
       exists (select from laneway.leader r
                where r.held_until > clock_timestamp() and r.holder is distinct from l.worker_id)
       or exists (select from laneway.workers x
                   where x.stopped_at is null and x.seen_at > clock_timestamp() - interval '12 seconds'
                     and x.transport <> 'grpc' and x.id is distinct from l.worker_id) as is_watched,
       coalesce(p.published_at is not null, false) as is_published,
       coalesce(p.two_person, false) as two_person,
       -- The same decision as laneway.lacking_approval and laneway.return_to_approval.
       case when coalesce(w.sealed, d.sealed, q.sealed) is false
                 and (p.approval <> 'never' or (p.has_analysis and g.analysis is null))
            then case when (p.has_analysis or g.asked in ('analysis', 'both')) and g.analysis is null then 'pending'
                      else 'awaiting_approval' end end as sent_back_to,
       v.live, v.knowing, v.serving, v.drained, f.per_s, f.run_s, v.candidates::text, o.name, o.seen_at, o.stopped_at,
       e.handled, e.passed, e.unlimited,
       array(select b.id from laneway.jobs b where b.seq = any (l.waits_for) order by b.seq) as waits_for,
       e.types_ahead::text, f.type_run_s::text, f.lane_run_s,
       (select jsonb_agg(jsonb_build_array(r.job_type, extract(epoch from clock_timestamp() - r.claimed_at)))::text
          from (select h.job_type, h.claimed_at from laneway.lease h where h.lane = k.lane limit %(bound)s::integer) r
         where w.seq is not null) as running,
       clock_timestamp() as read_at
  from laneway.jobs j
 cross join (select * from laneway.control limit 1) c
  left join laneway.ready w on w.seq = j.seq
  left join laneway.delayed d on d.seq = j.seq
  left join laneway.lease l on l.seq = j.seq
  left join laneway.key_waiters q on q.seq = j.seq
  left join laneway.approvals g on g.seq = j.seq
  left join laneway.job_types p on p.name = j.job_type
 cross join lateral (select laneway.lane_of(j.job_type) as own,
                            coalesce(l.lane, laneway.lane_of(coalesce(w.job_type, d.job_type, j.job_type))) as lane) k
  left join laneway.worker_lanes n on n.name = k.lane
 cross join lateral laneway.queue_position(j.seq, %(bound)s::integer) s
 cross join lateral laneway.recent_pace(k.lane, j.job_type) f
 cross join lateral (
    select count(*)::integer as live,
           count(*) filter (where j.job_type = any (x.job_types))::integer as knowing,
           count(*) filter (where y.serves)::integer as serving,
           count(*) filter (where y.serves and x.drain_requested_at is not null)::integer as drained,
           jsonb_agg(jsonb_build_object(
               'name', x.name, 'seen_at', x.seen_at,
               'is_stopping', x.concurrency = 0 or coalesce((x.room ->> 'is_stopping')::boolean, false),
               'unseen_s', extract(epoch from clock_timestamp() - x.seen_at),
               'kind', z.kind, 'place', x.room -> 'kinds' -> z.kind, 'slots', x.room -> 'kinds' -> 'slots',
               'full_since', x.seen_at - make_interval(secs => z.full_s)) order by z.full_s desc nulls last, x.seen_at, x.name)
               filter (where y.serves and x.drain_requested_at is null) as candidates
      from laneway.workers x
     cross join lateral (select j.job_type = any (x.job_types) and (
        x.lanes is null or k.lane = any (x.lanes) or k.own = any (x.lanes)) as serves) y
     cross join lateral (select t.kind, (x.room -> 'full' -> t.kind ->> k.lane)::double precision as full_s
                           from (select coalesce(p.isolation, 'async') as kind) t) z
     -- A leading server may run no jobs; a stopping remote worker has no capacity.
     where x.stopped_at is null and x.seen_at > clock_timestamp() - interval '45 seconds'
       and (x.concurrency > 0 or x.transport = 'grpc')) v
  left join lateral (
    -- The last worker that could run it and stopped or fell silent.
    select x.name, x.seen_at, x.stopped_at from laneway.workers x
     where v.serving = 0 and x.seen_at > clock_timestamp() - interval '1 day'
       and (x.stopped_at is not null or x.seen_at <= clock_timestamp() - interval '45 seconds')
       and j.job_type = any (x.job_types)
       and (x.lanes is null or k.lane = any (x.lanes) or k.own = any (x.lanes))
     order by x.seen_at desc limit 1) o on true
  left join lateral (
    -- If a worker handles this job: earlier due jobs that a worker handles, and those that claims skip.
    with recursive met as (
        (select r.job_type from laneway.ready r order by r.job_type limit 1)
        union all
        select (select r.job_type from laneway.ready r where r.job_type > t.job_type order by r.job_type limit 1)
          from met t where t.job_type is not null
    ), named as (
        select array(select n from laneway.worker_lanes x cross join unnest(x.job_types) n
                      where (x.name = k.lane) <> (k.lane = 'default')) as types
    ), types as materialized (
        select m.job_type, y.name in (
                   select unnest(x.job_types) from laneway.workers x
                    where x.stopped_at is null and x.seen_at > clock_timestamp() - interval '45 seconds'
                      and (x.concurrency > 0 or x.transport = 'grpc')
                      and (x.lanes is null or k.lane = any (x.lanes) or k.lane = 'analysis')) as is_handled,
               not exists (select from laneway.job_types t where t.name = y.name and t.limits <> '{}') as is_unlimited
          from met m cross join named cross join lateral (select ltrim(m.job_type, E'\x01') as name) y
         where case when k.lane = 'analysis' then m.job_type like E'\x01%%'
                    else m.job_type not like E'\x01%%'
                         and (m.job_type = any (named.types)) <> (k.lane = 'default') end
    )
    select jsonb_object_agg(c.job_type, c.jobs) filter (where c.is_handled) as types_ahead,
           coalesce(sum(c.jobs) filter (where c.is_handled), 0)::integer as handled,
           coalesce(sum(c.jobs) filter (where not c.is_handled), 0)::integer as passed,
           coalesce(sum(c.jobs) filter (where not c.is_handled and c.is_unlimited), 0)::integer as unlimited
      from (
        select a.job_type, a.is_handled, a.is_unlimited, count(*) as jobs
          from (values (true), (false)) h (is_handled)
         cross join lateral (
            select t.is_handled, t.is_unlimited, t.job_type from types t
             cross join (values (true), (false)) f (fresh)
             cross join lateral (
                select from laneway.ready r
                 where r.job_type = t.job_type and r.fresh = f.fresh and (r.rank, r.seq) < (w.rank, w.seq)
                 limit %(bound)s::integer + 1) b
             where t.is_handled = h.is_handled limit %(bound)s::integer + 1) a
         where w.seq is not null and v.serving > 0
         group by a.job_type, a.is_handled, a.is_unlimited) c) e on true
 where j.id = %(id)s::uuid
