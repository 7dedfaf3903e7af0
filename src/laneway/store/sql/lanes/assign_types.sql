-- Creates missing lanes and adds job types that are in no lane to the named one; existing assignments win.
select laneway.assign_types(%(lanes)s::text[], %(job_types)s::text[], %(like)s::jsonb, %(by)s::text)
