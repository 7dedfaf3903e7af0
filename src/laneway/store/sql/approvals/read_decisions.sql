-- Every decision about a job, oldest first.
select d.decision, d.decided_at, d.decided_by, d.comment, d.seal
  from laneway.decisions d
 where d.seq = (select j.seq from laneway.jobs j where j.id = %(id)s::uuid)
 order by d.id
