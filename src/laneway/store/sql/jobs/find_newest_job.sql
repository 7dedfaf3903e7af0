-- The sequence number of the newest job; 0 without one.
select coalesce((select j.seq from laneway.jobs j order by j.seq desc limit 1), 0)
