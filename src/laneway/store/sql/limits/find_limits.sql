-- The names that have a limit; locks nothing, so that worker starts do not delay claims.
select name from laneway.limits where name = any (%(names)s::text[])
