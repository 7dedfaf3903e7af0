-- Bounds how long each statement of the rest of the transaction waits for a lock.
select set_config('lock_timeout', %(ms)s::text, true)
