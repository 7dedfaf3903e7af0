-- Used slots, depth and oldest wait per lane and job type. Depth stops counting at the bound.
select lane, job_type, running, depth, is_capped, oldest_s from laneway.measure(%(bound)s::integer)
