-- Mends counters of slots and limits that differ from the leases, while this holder leads.
select laneway.recount() where laneway.leads(%(holder)s::uuid, %(epoch)s::bigint)
