-- The fingerprint of payload and analysis now, whether a second person must approve, and the trace of the submit.
select laneway.seal(j.payload, a.analysis), coalesce(t.two_person, false), j.traceparent
  from laneway.jobs j
  left join laneway.approvals a on a.seq = j.seq
  left join laneway.job_types t on t.name = j.job_type
 where j.seq = (select k.seq from laneway.jobs k where k.id = %(id)s::uuid)
