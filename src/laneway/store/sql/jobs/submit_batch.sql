-- Stores many jobs, all or none, for roles or drivers without COPY; results in the order given.
-- The caller has checked sizes against its settings.
select job_id, status, duplicate
  from laneway.submit_batch(string_to_array(%(ids)s::text, ',')::uuid[], %(payloads)s::text::jsonb,
                            string_to_array(%(kind_of)s::text, ',')::integer[], %(kinds)s::text::jsonb,
                            p_max_payload_bytes => 2147483647, p_max_key_bytes => 2147483647,
                            p_after => %(after)s::text::jsonb, p_flow => %(flow)s::uuid)
