-- Whether the pause gate is shut, since when and by whom.
select paused, paused_at, paused_by from laneway.control
