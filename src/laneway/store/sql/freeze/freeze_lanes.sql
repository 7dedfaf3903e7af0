-- Drains lanes and stores their previous state; returns their names.
select laneway.freeze(%(lanes)s::text[], %(by)s::text)
