-- The slots of a schedule, newest first, before the named one if any.
select t.slot, t.manual, t.outcome, t.job_id, t.note, t.at
  from laneway.schedule_slots t
 where t.schedule = %(name)s and (%(before)s::timestamptz is null or t.slot < %(before)s::timestamptz)
 order by t.slot desc limit %(limit)s::integer
