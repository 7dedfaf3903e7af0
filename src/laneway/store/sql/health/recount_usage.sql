-- Mends counters of slots and limits that differ from the leases, whoever leads.
select laneway.recount()
