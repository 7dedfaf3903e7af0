-- Corrects counters of slots and limits that differ from the leases; needs no leadership.
select laneway.recount()
