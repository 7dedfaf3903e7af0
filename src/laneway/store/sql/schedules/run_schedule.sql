-- Takes a slot of its own now and submits its job, or asks for the check first; no row without a schedule.
select answer, slot, job_id, job_type, note
  from laneway.run_schedule(%(name)s::text, %(by)s::text, %(check)s::boolean)
 where answer is not null
