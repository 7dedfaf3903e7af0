-- The slots of a schedule, newest first, before the named one if any.
select t.slot, t.manual, t.outcome, t.job_id, t.note, t.at,
       (select o.status from laneway.outcome o
         where o.seq = (select j.seq from laneway.jobs j where j.id = t.job_id)) as ended
  from laneway.schedule_slots t
 where t.schedule = %(name)s and (%(before)s::timestamptz is null or t.slot < %(before)s::timestamptz)
 order by t.slot desc limit %(limit)s::integer
