-- Gives back what one remote attempt has held for longer than it may, if there is one.
select job_id, names, next_s from laneway.end_call_holds()
