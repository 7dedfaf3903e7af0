-- The lanes that are frozen, and what each was before.
select lane, was_enabled, frozen_at, frozen_by from laneway.frozen_lanes order by lane
