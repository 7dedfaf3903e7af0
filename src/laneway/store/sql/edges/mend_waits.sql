-- Corrects waiting jobs that nothing would release, only for the leader.
select m.mended, m.after, m.job_types
  from (select %(look)s::integer as look
         where laneway.is_leader(%(holder)s::uuid, %(epoch)s::bigint) offset 0) t
 cross join lateral laneway.mend_waits(%(after)s::bigint, t.look) m
