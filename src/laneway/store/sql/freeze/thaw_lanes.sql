-- Restores the previous state of frozen lanes; returns their state now.
select lane, was_enabled, enabled from laneway.thaw(%(lanes)s::text[], %(by)s::text)
