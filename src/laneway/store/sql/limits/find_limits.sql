-- Which of the names have a limit; locks nothing, so that worker starts do not hold up claims.
select name from laneway.limits where name = any (%(names)s::text[])
