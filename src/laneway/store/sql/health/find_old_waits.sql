-- Jobs that have waited for an event without a timeout for longer than that, among the first waiting jobs.
select (select j.id from laneway.jobs j where j.seq = w.seq)
  from (select x.* from laneway.waiting x order by x.seq limit %(look)s::integer) w
 where w.reason = 'event' and w.wake_at is null
   and w.since < clock_timestamp() - make_interval(secs => %(age)s::double precision)
 order by w.seq
