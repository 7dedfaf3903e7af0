-- Plans the next slot, only if none is planned and the schedule is unchanged since it was read. Returns whether it did.
update laneway.schedule_state t set next_at = %(next_at)s::timestamptz
  from laneway.schedules s
 where s.name = %(name)s and s.updated_at = %(seen)s::timestamptz and s.enabled
   and t.name = s.name and t.next_at is null
   -- Never waits: a concurrent change makes the scheduler plan again.
   and t.name = (select l.name from laneway.schedule_state l where l.name = %(name)s for no key update skip locked)
returning true
