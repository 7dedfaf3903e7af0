-- Takes the lease of a schedule's check, unless another process has it or had it since the schedule was read.
-- Returns whether it did.
update laneway.schedule_state t
   set checking_by = %(holder)s::uuid,
       checking_until = clock_timestamp() + make_interval(secs => %(lease_s)s::double precision)
  from laneway.schedules s
 where s.name = %(name)s and s.updated_at = %(seen)s::timestamptz and t.name = s.name
   -- Never waits: a concurrent change also changes what there is to check.
   and t.name = (select l.name from laneway.schedule_state l where l.name = %(name)s for no key update skip locked)
   and (t.next_at, t.asked_at) is not distinct from (%(next_at)s::timestamptz, %(asked_at)s::timestamptz)
   and (t.checking_until is null or t.checking_until <= clock_timestamp())
returning true
