-- The schedules of these names, or all, by name, each with its state and its newest slots.
select s.name, s.job_type, s.payload::text, s.cron, s.timezone, s.missed, s.catch_up, s.check_name, s.priority,
       s.max_retries, s.concurrency_key, s.workspace, s.tags, s.enabled, s.error, s.created_at, s.updated_at,
       s.updated_by, t.next_at, t.check_failures, clock_timestamp() as now,
       l.slots, l.manual, l.outcomes, l.job_ids, l.notes, l.at, l.ends
  from laneway.schedules s
  join laneway.schedule_state t on t.name = s.name
 cross join lateral (
    select array_agg(n.slot order by n.slot desc) as slots, array_agg(n.manual order by n.slot desc) as manual,
           array_agg(n.outcome order by n.slot desc) as outcomes, array_agg(n.job_id order by n.slot desc) as job_ids,
           array_agg(n.note order by n.slot desc) as notes, array_agg(n.at order by n.slot desc) as at,
           array_agg(n.ended order by n.slot desc) as ends
      from (select x.slot, x.manual, x.outcome, x.job_id, x.note, x.at,
                   (select o.status from laneway.outcome o
                     where o.seq = (select j.seq from laneway.jobs j where j.id = x.job_id)) as ended
              from laneway.schedule_slots x where x.schedule = s.name
             order by x.slot desc limit %(recent)s::integer) n) l
 where %(names)s::text[] is null or s.name = any (%(names)s::text[])
 order by s.name
