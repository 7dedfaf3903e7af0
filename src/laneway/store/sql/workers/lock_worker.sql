-- Holds one worker's row until the transaction ends, so that who drains it sees what it was before.
select from laneway.workers w where w.id = %(id)s::uuid for no key update
