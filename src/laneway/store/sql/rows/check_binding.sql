-- Whether row-level security binds this role where jobs are; false before there are any.
select coalesce(row_security_active(to_regclass('laneway.jobs')::oid), false)
