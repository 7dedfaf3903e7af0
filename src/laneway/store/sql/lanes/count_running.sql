-- Running jobs by lane.
select l.lane, count(*)::integer from laneway.lease l group by l.lane
