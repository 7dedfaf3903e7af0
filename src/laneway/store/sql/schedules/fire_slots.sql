-- Records slots and submits their jobs once, only while this holder is the leader or holds the check.
select answer, taken, job_type
  from laneway.fire(p_name => %(name)s::text, p_seen => %(seen)s::timestamptz, p_from => %(from_at)s::timestamptz,
                    p_next => %(next_at)s::timestamptz, p_slots => %(slots)s::timestamptz[],
                    p_outcomes => %(outcomes)s::text[], p_notes => %(notes)s::text[], p_holder => %(holder)s::uuid,
                    p_epoch => %(epoch)s::bigint, p_manual => %(manual)s::boolean,
                    p_check_error => %(check_error)s::text)
