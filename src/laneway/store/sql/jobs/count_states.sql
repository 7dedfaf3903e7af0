-- How many jobs of those that fit are in each state; what one look costs does not grow with how many there are.
select status, counted, is_capped
  from laneway.count_states(%(bound)s::integer, %(lane)s::text, %(job_type)s::text, %(tag)s::text, %(workspace)s::text,
                            %(since)s::timestamptz, %(until)s::timestamptz, %(older_than)s::double precision,
                            %(newer_than)s::double precision, %(within)s::jsonb)
