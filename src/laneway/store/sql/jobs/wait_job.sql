-- Status, result and error of a job, by a cheap query for clients that wait for its end.
select case when o.seq is not null then o.status when l.seq is not null then 'running' else 'approved' end,
       o.result::text,
       coalesce(o.error, case when o.cancel_reason is not null then
                jsonb_build_object('type', 'Cancel', 'message', o.cancel_reason) end)::text
  from laneway.jobs j
  left join laneway.outcome o on o.seq = j.seq
  left join laneway.lease l on l.seq = j.seq
 where j.seq = (select k.seq from laneway.jobs k where k.id = %(id)s::uuid)
