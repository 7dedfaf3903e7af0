-- Parks waiting jobs whose key another job holds; returns how many.
select laneway.park(%(types)s::text[], %(limit)s::integer)
