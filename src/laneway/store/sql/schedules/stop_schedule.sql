-- Disables a schedule that cannot be served, with the reason, only if it is still as it was read.
update laneway.schedules s set enabled = false, error = %(error)s, updated_by = 'laneway'
 where s.updated_at = %(seen)s::timestamptz and s.enabled
   -- Never waits: who changes it now may have mended it.
   and s.name = (select l.name from laneway.schedules l where l.name = %(name)s for no key update skip locked)
returning true
