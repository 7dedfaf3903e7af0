-- Places stored jobs that need an analysis or an approval, and stores the deadlines of jobs.
with aged as (
    insert into laneway.deadlines (seq, at)
    select j.seq, j.created_at + make_interval(secs => coalesce(t.max_age_s, a.max_age))
      from unnest(%(aged)s::bigint[], %(max_ages)s::double precision[]) as a (seq, max_age)
      join laneway.jobs j on j.seq = a.seq
      left join laneway.job_types t on t.name = j.job_type
     where coalesce(t.max_age_s, a.max_age) is not null
)
select g.seq, laneway.start_approval(g.seq, %(now)s::text::timestamptz, g.needs)
  from unnest(%(gated)s::bigint[], %(needs)s::text[]) as g (seq, needs)
