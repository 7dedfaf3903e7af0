-- Disables a schedule that cannot be fired, with the reason, only if it is unchanged since it was read.
update laneway.schedules s set enabled = false, error = %(error)s, updated_by = 'laneway'
 where s.updated_at = %(seen)s::timestamptz and s.enabled
   -- Never waits: a concurrent change may have fixed it.
   and s.name = (select l.name from laneway.schedules l where l.name = %(name)s for no key update skip locked)
returning true
