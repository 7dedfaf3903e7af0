-- Locks one worker's row until the transaction ends, so that a drain sees its previous state.
select from laneway.workers w where w.id = %(id)s::uuid for no key update
