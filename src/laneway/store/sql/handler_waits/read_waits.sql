-- The waits that a job's handler asked for in its earlier runs, in order.
select name, kind, event, key, total, stored from laneway.waits_of(%(seq)s::bigint)
