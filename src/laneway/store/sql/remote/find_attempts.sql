-- Finds attempts that this worker of this principal runs or ran to their end; reveals nothing about others.
select g.n, j.seq, case when h.job_type like E'\x01%%' then laneway.lane_of(j.job_type) else h.lane end, h.job_type
  from unnest(%(ids)s::uuid[], %(attempts)s::integer[]) with ordinality as g (id, attempt, n)
 cross join lateral (select b.seq, b.job_type from laneway.jobs b where b.id = g.id offset 0) j
 cross join lateral (
    select x.lane, x.job_type, x.worker_id from (
        select l.lane, l.job_type, l.worker_id from laneway.lease l
         where l.seq = j.seq and l.attempt = g.attempt
        union all
        select o.lane, o.job_type, o.worker_id from laneway.outcome o
         where o.seq = j.seq and o.attempt = g.attempt
        union all
        select a.lane, case a.outcome when 'analyzed' then E'\x01' || j.job_type else j.job_type end, a.worker_id
          from laneway.attempts a
         where a.seq = j.seq and a.attempt = g.attempt) x
     limit 1) h
 where h.worker_id = %(worker)s::uuid
   and exists (select from laneway.workers w
                where w.id = %(worker)s::uuid and w.principal_id = %(principal)s::uuid)
