-- The named limits that exist; locks nothing, so that worker starts do not delay claims.
select name, max_concurrent, rate_count, rate_period_s, scope, updated_at, updated_by
  from laneway.limits where name = any (%(names)s::text[]) order by name
