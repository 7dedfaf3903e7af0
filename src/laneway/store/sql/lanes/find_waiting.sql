-- The job types among these that have waiting jobs, analyses included.
select t from unnest(%(types)s::text[]) t
 where exists (select from laneway.ready r where r.job_type in (t, laneway.analysis_of(t)))
    or exists (select from laneway.key_waiters k where k.job_type = t)
    or exists (select from laneway.awaiting a where a.job_type = t)
    or exists (select from laneway.delayed d where d.job_type in (t, laneway.analysis_of(t)))
    or exists (select from laneway.waiting w where w.job_type = t)
