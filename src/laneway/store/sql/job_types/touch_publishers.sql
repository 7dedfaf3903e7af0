-- Records that applications still have the job types they published; the two lists are parallel.
update laneway.type_publishers p set seen_at = clock_timestamp()
  from unnest(%(types)s::text[], %(applications)s::text[]) t (job_type, application)
 where p.job_type = t.job_type and p.application = t.application
   and p.seen_at < clock_timestamp() - interval '10 minutes'
