-- The state of every schedule whose next slot is in the future by the database's clock.
select clock_timestamp(), s.name, s.job_type, s.cron, s.timezone, s.missed, s.catch_up, s.check_name, s.updated_at,
       t.next_at, t.last_at, t.asked_at, t.asked_by
  from laneway.schedules s join laneway.schedule_state t on t.name = s.name
 where s.enabled and t.next_at > clock_timestamp()
