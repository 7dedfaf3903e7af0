-- Sends the message that submit_and_note has left, if any, without waiting for the disk.
select case when m.message <> '' then pg_notify('laneway', m.message) end,
       set_config('laneway.wake', '', false), set_config('synchronous_commit', 'off', true)
  from (select coalesce(current_setting('laneway.wake', true), '') as message offset 0) m
