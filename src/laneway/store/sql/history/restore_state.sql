-- Restores an earlier state of an object of the control plane, as a new change.
select answer, id, hindrance
  from laneway.roll_back(%(kind)s::text, %(name)s::text, %(to)s::bigint, %(by)s::text)
