-- Job types that applications publish with different policies, and the fields that differ.
select job_type, applications, fields from laneway.publication_conflicts(%(types)s::text[])
