-- Tells listening workers; loses nothing when nobody listens, they poll.
-- Alone in its transaction it need not wait for the disk either.
select pg_notify('laneway', %(message)s),
       case when %(alone)s then set_config('synchronous_commit', 'off', true) end
