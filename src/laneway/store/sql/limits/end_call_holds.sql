-- Releases the expired limits of one remote attempt, if any.
select job_id, names, next_s from laneway.end_call_holds()
