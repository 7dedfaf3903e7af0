-- The schedules of these names, or all, by name, each with its state and its newest slot.
select s.name, s.job_type, s.payload::text, s.cron, s.timezone, s.missed, s.catch_up, s.check_name, s.priority,
       s.max_retries, s.concurrency_key, s.workspace, s.tags, s.enabled, s.error, s.created_at, s.updated_at,
       s.updated_by, t.next_at, t.check_failures, clock_timestamp() as now,
       l.slot, l.manual, l.outcome, l.job_id, l.note, l.at
  from laneway.schedules s
  join laneway.schedule_state t on t.name = s.name
  left join lateral (select * from laneway.schedule_slots t where t.schedule = s.name
                      order by t.slot desc limit 1) l on true
 where %(names)s::text[] is null or s.name = any (%(names)s::text[])
 order by s.name
