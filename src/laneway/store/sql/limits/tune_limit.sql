-- Changes exactly the columns named in `columns`; returns the changed row.
update laneway.limits l
   set max_concurrent = case when 'max_concurrent' = any (c.columns)
                             then %(max_concurrent)s::integer else l.max_concurrent end,
       rate_count     = case when 'rate_count' = any (c.columns) then %(rate_count)s::integer else l.rate_count end,
       rate_period_s  = case when 'rate_period_s' = any (c.columns)
                             then %(rate_period_s)s::double precision else l.rate_period_s end,
       scope          = case when 'scope' = any (c.columns) then %(scope)s::text else l.scope end,
       updated_by     = c.actor
  from (select %(columns)s::text[] as columns, set_config('laneway.actor', %(by)s::text, true) as actor) c
 where l.name = %(name)s::text
returning l.name, l.max_concurrent, l.rate_count, l.rate_period_s, l.scope, l.updated_at, l.updated_by
