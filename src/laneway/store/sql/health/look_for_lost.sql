-- Jobs that are in no state among as many as one look takes; last, without an id, where it ended if there may be more.
select l.seq, l.id from laneway.look_for_lost(%(after)s::bigint, %(look)s::integer) l
