-- Claims like claim_with_origins, only if the named stream is the worker's newest; otherwise returns no row.
-- A newer stream waits until this claim ends, so that it sees all leases of the worker.
select c.state, c.own::text, c.horizon::text, c.left_over, c.more, c.lease_s, c.limited, c.wait_s, c.parked, c.refused,
       c.seqs, c.ids, c.attempts, c.ranks, c.job_types, c.payloads, c.checkpoints, c.retries, c.freshes, c.forged,
       c.retry_limits, c.tag_lists, c.submitters,
       o.waits, o.traces, case when 1 < any (c.attempts) then laneway.losses_of(c.seqs) end
  from (select x.id from laneway.workers x
         where x.id = %(worker)s::uuid and x.session = %(stream)s::uuid for share) w
 -- Joined to the row found, so that nothing is claimed without one.
 cross join lateral laneway.claim(
           w.id, %(lane)s::text, %(version)s::bigint, %(room)s::integer,
           %(types)s::text[], %(groups)s::integer[], %(fresh)s::boolean[], %(los)s::integer[],
           %(floors)s::bigint[], %(highs)s::integer[], %(caps)s::integer[], p_busy => %(busy)s::integer,
           p_plain => %(plain)s::boolean) c
  left join lateral laneway.origins(c.seqs, c.attempts) o on true
