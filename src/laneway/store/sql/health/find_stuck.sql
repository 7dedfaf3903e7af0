-- Waiting jobs that nothing would release, among the first; a last row without an id if there may be more.
select s.id from laneway.stuck_waits(0, %(look)s::integer) s order by s.seq, s.id is null
