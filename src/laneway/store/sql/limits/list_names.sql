-- The names of limits; a bounded number.
select name from laneway.limits order by name limit %(limit)s::integer
