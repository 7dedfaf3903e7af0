-- End hooks and enabled webhooks of certain job types, with these types; a bounded number.
select case when webhook is null then 'end hook ' || name else 'webhook ' || webhook end, job_types
  from laneway.end_hooks where job_types is not null order by name limit %(limit)s::integer
