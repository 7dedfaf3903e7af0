-- Deletes lanes, then creates or overwrites others, in one change.
select laneway.load_lanes(%(lanes)s::jsonb, %(deleted)s::text[], %(by)s::text)
