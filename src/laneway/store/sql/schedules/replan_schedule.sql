-- Moves the next slot earlier, only if the schedule is unchanged and unlocked. Returns whether it did.
update laneway.schedule_state t set next_at = %(next_at)s::timestamptz
  from laneway.schedules s
 where s.name = %(name)s and s.updated_at = %(seen)s::timestamptz and s.enabled
   and t.name = s.name and t.next_at = %(from)s::timestamptz and t.next_at > %(next_at)s::timestamptz
   and t.name = (select l.name from laneway.schedule_state l where l.name = %(name)s for no key update skip locked)
returning true
