-- All attempts of a job in order, the running and the last one included, each with its log lines.
select a.attempt, a.outcome, a.worker_id, w.name, a.lane, a.claimed_at, a.started_at, a.finished_at, a.error,
       (select coalesce(jsonb_agg(jsonb_build_object('at', n.at, 'level', n.level, 'message', n.message)
                                  order by n.line), '[]')
          from laneway.logs n where n.seq = j.seq and n.attempt = a.attempt) as log
  from laneway.jobs j
 cross join lateral (
    select t.attempt, t.outcome, t.worker_id, t.lane, t.claimed_at, t.started_at, t.finished_at, t.error
      from laneway.attempts t where t.seq = j.seq
    union all
    select o.attempt, o.status, o.worker_id, o.lane, o.claimed_at, o.started_at, o.finished_at, o.error
      from laneway.outcome o where o.seq = j.seq and o.claimed_at is not null
    union all
    select l.attempt, 'running', l.worker_id, l.lane, l.claimed_at, l.started_at, null, null
      from laneway.lease l where l.seq = j.seq) a
  left join laneway.workers w on w.id = a.worker_id
 where j.seq = (select k.seq from laneway.jobs k where k.id = %(id)s::uuid)
 order by a.attempt
