-- Deletes the recorded changes of the benchmark's lane.
delete from laneway.control_history h where h.kind = 'lane' and h.name = %(lane)s::text
