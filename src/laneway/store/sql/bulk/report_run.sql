-- Records the progress of a run that has not ended.
update laneway.bulk_runs
   set state = %(state)s::text, done = %(done)s::bigint, refused = %(refused)s::jsonb, updated_at = clock_timestamp()
 where id = %(id)s::uuid and state = 'running'
