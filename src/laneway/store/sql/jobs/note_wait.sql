-- Notes that a running attempt waits for a job, or no longer does; returns whether it was noted.
select laneway.note_wait(%(job)s::uuid, %(attempt)s::integer, %(for)s::uuid, %(ends)s::boolean)
