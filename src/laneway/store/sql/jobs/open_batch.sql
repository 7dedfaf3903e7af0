-- The clock, the job types' defaults and, for roles that may use COPY, sequence numbers in submit order for a batch.
select case when pg_current_xact_id() is not null  -- first of all: see the last column
            then to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') end,
       -- COPY is refused if row-level security applies to the role.
       case when has_table_privilege('laneway.jobs', 'insert') and has_table_privilege('laneway.ready', 'insert')
                 and has_table_privilege('laneway.delayed', 'insert') and has_sequence_privilege('laneway.jobs_seq_seq', 'usage')
                 and not row_security_active('laneway.jobs') and %(can_copy)s::boolean
            then array(select nextval('laneway.jobs_seq_seq') from generate_series(1, %(count)s::integer)) end,
       (select json_object_agg(t.name, json_build_array(
                   t.priority, t.max_retries, t.has_analysis or t.approval <> 'never', t.max_age_s is not null, t.two_person,
                   t.unique_for_s is not null or t.unique_by is not null))::text
          from laneway.job_types t where t.name = any (%(job_types)s::text[])),
       -- A client that starts to watch now waits for this transaction, because it already has an id.
       exists (select from laneway.watches w where w.seq = 0)
