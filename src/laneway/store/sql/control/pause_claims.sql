-- Sets the pause gate; after this commits, no claim commits until the gate is opened.
update laneway.control
   set paused = %(paused)s::boolean, paused_by = said.actor,
       paused_at = case when %(paused)s::boolean then clock_timestamp() end
  from (select set_config('laneway.actor', %(by)s::text, true) as actor) said
