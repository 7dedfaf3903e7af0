-- Schedules that this process may fire now by the database's clock, and the time until the next ones.
-- Without a check only the leader may; with one, any process that has the check and finds its lease free.
with clock as materialized (
    select clock_timestamp() as now
), lead as materialized (
    select r.epoch from laneway.leader r, clock c
     where r.name = 'leader' and r.holder = %(holder)s::uuid and r.held_until > c.now
), mine as materialized (
    select s.name, s.job_type, s.cron, s.timezone, s.missed, s.catch_up, s.check_name, s.updated_at, t.next_at, t.last_at,
           t.asked_at, t.asked_by,
           greatest(case when s.enabled then coalesce(t.next_at, '-infinity') else 'infinity' end, t.checking_until) as due_at,
           greatest(t.asked_at, t.checking_until) as asked_due_at
      from laneway.schedules s join laneway.schedule_state t on t.name = s.name
     where case when s.check_name is null then exists (select from lead)
           else s.check_name = any (%(checks)s::text[]) end
       and (s.enabled or t.asked_at is not null)
)
select c.now, l.epoch,
       (select extract(epoch from min(least(m.due_at, case when m.asked_at is not null then m.asked_due_at end)) - c.now)
          from mine m where isfinite(least(m.due_at, case when m.asked_at is not null then m.asked_due_at end))
       )::double precision as wait_s,
       d.name, d.job_type, d.cron, d.timezone, d.missed, d.catch_up, d.check_name, d.updated_at, d.next_at, d.last_at,
       d.asked_at, d.asked_by
  from clock c
  left join lead l on true
  left join lateral (
      select * from mine m
       where m.due_at <= c.now or (m.asked_at is not null and m.asked_due_at <= c.now)
       order by least(m.due_at, m.asked_at), m.name limit %(limit)s::integer
  ) d on true
