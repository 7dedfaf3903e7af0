-- Puts an object of the control plane back to an earlier state, as one change more.
select answer, id, hindrance
  from laneway.roll_back(%(kind)s::text, %(name)s::text, %(to)s::bigint, %(by)s::text)
