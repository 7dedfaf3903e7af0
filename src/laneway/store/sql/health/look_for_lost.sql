-- Jobs without a state within one bounded search; a last row without an id tells where to continue.
select l.seq, l.id from laneway.look_for_lost(%(after)s::bigint, %(scan)s::integer) l
