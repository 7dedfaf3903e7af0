-- Fires a schedule now as a separate slot, or requests its check first; no row for an unknown schedule.
select answer, slot, job_id, job_type, note
  from laneway.run_schedule(%(name)s::text, %(by)s::text, %(check)s::boolean)
 where answer is not null
