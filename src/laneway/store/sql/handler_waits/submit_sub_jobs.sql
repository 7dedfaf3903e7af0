-- Submits sub-jobs only for the running attempt, once per name of their wait.
-- The caller has checked sizes against its settings.
select answer, stored, job_types
  from laneway.submit_sub_jobs(%(seq)s::bigint, %(attempt)s::integer, %(name)s::text, %(total)s::integer,
                               %(offset)s::integer, string_to_array(%(ids)s::text, ',')::uuid[],
                               %(payloads)s::text::jsonb, string_to_array(%(kind_of)s::text, ',')::integer[],
                               %(kinds)s::text::jsonb, p_max_payload_bytes => 2147483647,
                               p_max_key_bytes => 2147483647)
