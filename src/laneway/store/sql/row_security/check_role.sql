-- Whether row-level security applies to this role on the jobs table; false before the table exists.
select coalesce(row_security_active(to_regclass('laneway.jobs')::oid), false)
