-- Claims up to the given room, in order, never beyond the lane's slots; one row, one round trip.
-- A job in its first attempt has no losses.
select state, own::text, horizon::text, left_over, more, lease_s, limited, wait_s, parked, refused,
       seqs, ids, attempts, ranks, job_types, payloads, checkpoints, retries, freshes, forged, retry_limits, tag_lists, submitters, case when 1 < any (attempts) then laneway.losses_of(seqs) end
  from laneway.claim(%(worker)s::uuid, %(lane)s::text, %(version)s::bigint, %(room)s::integer,
                     %(types)s::text[], %(groups)s::integer[], %(fresh)s::boolean[], %(los)s::integer[],
                     %(floors)s::bigint[], %(highs)s::integer[], %(caps)s::integer[], p_busy => %(busy)s::integer,
                     p_plain => %(plain)s::boolean)
