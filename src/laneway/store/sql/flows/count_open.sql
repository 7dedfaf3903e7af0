-- Counts waiting jobs by reason and open flows, each up to a bound; the flows are in every row.
select m.reason, m.counted, m.oldest_s, f.counted
  from laneway.measure_waiting(%(bound)s::integer) m
 cross join (select laneway.count_open_flows(%(bound)s::integer) as counted) f
