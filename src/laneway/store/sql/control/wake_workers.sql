-- Tells listening workers; loses nothing when nobody listens, they poll.
select pg_notify('laneway', %(message)s)
