-- Claims like claim_jobs, and returns each job's wait and trace for metrics and traces.
select c.state, c.own::text, c.horizon::text, c.left_over, c.more, c.lease_s, c.limited, c.wait_s, c.parked, c.refused,
       c.seqs, c.ids, c.attempts, c.ranks, c.job_types, c.payloads, c.checkpoints, c.retries, c.freshes, c.forged,
       c.retry_limits, c.tag_lists, c.submitters,
       o.waits, o.traces, case when 1 < any (c.attempts) then laneway.losses_of(c.seqs) end
  from laneway.claim(%(worker)s::uuid, %(lane)s::text, %(version)s::bigint, %(room)s::integer,
                     %(types)s::text[], %(groups)s::integer[], %(fresh)s::boolean[], %(los)s::integer[],
                     %(floors)s::bigint[], %(highs)s::integer[], %(caps)s::integer[], p_busy => %(busy)s::integer,
                     p_plain => %(plain)s::boolean) c
  left join lateral laneway.origins(c.seqs, c.attempts) o on true
