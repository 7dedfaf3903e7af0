-- Notifies listening workers; without listeners nothing is lost, because workers poll.
-- Alone in its transaction, it does not wait for the disk.
select pg_notify('laneway', %(message)s),
       case when %(alone)s then set_config('synchronous_commit', 'off', true) end
