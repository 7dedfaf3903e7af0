-- Reads every step of a job that has finished, as JSON text.
select name, result::text from laneway.steps where seq = %(seq)s::bigint
