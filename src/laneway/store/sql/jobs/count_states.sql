-- The number of matching jobs per state, at a cost that does not grow with the number of jobs.
select status, counted, is_capped
  from laneway.count_states(%(bound)s::integer, %(lane)s::text, %(job_type)s::text, %(tag)s::text, %(workspace)s::text,
                            %(since)s::timestamptz, %(until)s::timestamptz, %(older_than)s::double precision,
                            %(newer_than)s::double precision, %(within)s::jsonb, p_with_waiting => true)
