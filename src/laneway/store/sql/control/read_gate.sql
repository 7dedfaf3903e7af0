-- Whether the pause gate is closed, since when and by which caller.
select paused, paused_at, paused_by from laneway.control
