-- Due jobs of one lane per job type and priority, highest first. Each is counted up to its share of the bound.
select job_type, priority, depth, is_capped, oldest_s from laneway.measure_lane(%(lane)s::text, %(bound)s::integer)
