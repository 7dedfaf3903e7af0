-- The clock, the numbers in submit order and the job types' defaults that a batch of new jobs needs.
select case when pg_current_xact_id() is not null  -- first of all: see the last column
            then to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') end,
       array(select nextval('laneway.jobs_seq_seq') from generate_series(1, %(count)s::integer)),
       (select json_object_agg(t.name, json_build_array(
                   t.priority, t.max_retries, t.has_analysis or t.approval <> 'never', t.max_age_s is not null, t.two_person))::text
          from laneway.job_types t where t.name = any (%(job_types)s::text[])),
       -- COPY refuses to write where row-level security binds the role.
       row_security_active('laneway.jobs'),
       -- Who begins to watch now waits for this transaction to end, because it has a number already.
       exists (select from laneway.watches w where w.seq = 0)
