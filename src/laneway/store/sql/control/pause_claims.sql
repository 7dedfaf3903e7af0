-- Sets the pause gate; once this commits, no claim does until it is opened again.
update laneway.control
   set paused = %(paused)s::boolean, paused_by = %(by)s,
       paused_at = case when %(paused)s::boolean then clock_timestamp() end
