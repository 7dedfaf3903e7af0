-- Tells which job types applications publish with different policies, and in which fields.
select job_type, applications, fields from laneway.publication_conflicts(%(types)s::text[])
