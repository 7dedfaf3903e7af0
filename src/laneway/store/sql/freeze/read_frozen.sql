-- The frozen lanes and their previous state.
select lane, was_enabled, frozen_at, frozen_by from laneway.frozen_lanes order by lane
