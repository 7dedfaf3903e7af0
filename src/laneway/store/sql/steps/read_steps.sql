-- Every finished step of a job, as JSON text.
select name, result::text from laneway.steps where seq = %(seq)s::bigint
