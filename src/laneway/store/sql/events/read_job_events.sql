-- The events of a job after one of its events, in order of its changes; without one, or if it is gone, the newest.
with given as materialized (
    select e.id from laneway.events e join laneway.watches w on w.seq = e.seq cross join laneway.event_log l
     where e.seq = %(seq)s::bigint and e.id = %(after)s::bigint and e.id >= w.since_id and e.id > l.pruned_id
       and coalesce(%(log)s::text = laneway.log_identity(), true)
), newest as materialized (
    select e.id, e.name from laneway.events e where e.seq = %(seq)s::bigint order by e.id desc limit 1
)
select exists (select from given), (select n.id from newest n), (select n.name from newest n),
       (select laneway.log_identity()),
       e.id, e.seq, e.name, e.workspace, e.lane, e.job_type, e.created_by, e.state::text
  from (select 1) one
  left join lateral (
    select x.* from laneway.events x where x.seq = %(seq)s::bigint
       and x.id >= case when exists (select from given) then %(after)s::bigint + 1 else (select n.id from newest n) end
     order by x.id limit %(limit)s::integer) e on true
 order by e.id
