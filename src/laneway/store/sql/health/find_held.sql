-- Jobs that wait until a failed or cancelled one is retried, among the first waiting jobs: how many, the first, and its parent.
-- A parent that ended after the wait began, with the rule cancel, is about to cancel its child.
select count(*), (array_agg(j.id order by w.seq))[1], (array_agg(h.id order by w.seq))[1]
  from (select x.* from laneway.waiting x order by x.seq limit %(look)s::integer) w
 cross join lateral (
    select p.id from laneway.open_edges e
      join laneway.outcome o on o.seq = e.parent
      join laneway.jobs p on p.seq = e.parent
     where e.child = w.seq and o.status in ('failed', 'cancelled')
       and (e.rule = 'hold' or (e.rule = 'cancel' and o.finished_at < w.since))
     limit 1) h
  join laneway.jobs j on j.seq = w.seq
 where w.reason = 'jobs'
