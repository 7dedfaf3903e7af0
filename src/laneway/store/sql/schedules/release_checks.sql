-- Releases every check of this holder, so that another process may run it at once.
update laneway.schedule_state t set checking_by = null, checking_until = null
 where t.name in (select l.name from laneway.schedule_state l where l.checking_by = %(holder)s::uuid
                   for no key update skip locked)
