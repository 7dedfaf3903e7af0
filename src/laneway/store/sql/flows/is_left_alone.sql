-- Whether a retry of its flow leaves a failed or cancelled job as it is.
select laneway.is_left_alone(j.seq, j.flow) from laneway.jobs j where j.id = %(id)s::uuid
