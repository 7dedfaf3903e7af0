-- The newest finished steps of a job, in the order in which they finished, without their results.
select name, attempt, took_s, at from laneway.finished_steps(%(id)s::uuid, %(limit)s::integer)
