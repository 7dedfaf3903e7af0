-- Puts aside waiting jobs whose key another job holds; answers how many.
select laneway.park(%(types)s::text[], %(limit)s::integer)
