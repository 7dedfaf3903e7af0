-- The newest attempts of a job before one, in order, including the running and the last one.
-- Each with its newest log lines.
with one as materialized (
    select k.seq from laneway.jobs k where k.id = %(id)s::uuid
), tried as materialized (
    select u.* from (
    (select t.attempt, t.outcome, t.worker_id, t.lane, t.claimed_at, t.started_at, t.finished_at, t.error
       from laneway.attempts t where t.seq = (select j.seq from one j) and t.attempt < %(before)s::integer
      order by t.attempt desc limit %(limit)s::integer)
    union all
    select o.attempt, o.status, o.worker_id, o.lane, o.claimed_at, o.started_at, o.finished_at, o.error
      from laneway.outcome o where o.seq = (select j.seq from one j) and o.claimed_at is not null
       and o.attempt < %(before)s::integer
    union all
    select l.attempt, 'running', l.worker_id, l.lane, l.claimed_at, coalesce(l.started_at, l.claimed_at), null, null
      from laneway.lease l where l.seq = (select j.seq from one j) and l.attempt < %(before)s::integer) u
     order by u.attempt desc limit %(limit)s::integer
), newest as materialized (
    -- A handler may log without end: this bounds what one page reads.
    select a.attempt, n.line, n.at, n.level, n.message
      from tried a
     cross join lateral (
        select g.line, g.at, g.level, g.message from laneway.logs g
         where g.seq = (select j.seq from one j) and g.attempt = a.attempt
         order by g.line desc limit %(lines_each)s) n
     order by a.attempt desc, n.line desc limit %(lines)s
), told as materialized (
    select n.attempt, jsonb_agg(jsonb_build_object('at', n.at, 'level', n.level, 'message', n.message)
                                order by n.line) as log
      from newest n group by n.attempt
)
select a.attempt, a.outcome, a.worker_id, w.name, a.lane, a.claimed_at, a.started_at, a.finished_at, a.error,
       coalesce(s.log, '[]') as log,
       -- Lines are numbered from 1: counting them would cost as much as reading them.
       coalesce((select g.line from laneway.logs g where g.seq = (select j.seq from one j) and g.attempt = a.attempt
                  order by g.line desc limit 1), 0) as log_lines
  from tried a
  left join told s on s.attempt = a.attempt
  left join laneway.workers w on w.id = a.worker_id
 order by a.attempt
