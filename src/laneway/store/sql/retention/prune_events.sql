-- Deletes old events and watches only while this holder leads in this epoch; returns how many.
select laneway.prune_events(%(holder)s::uuid, %(epoch)s::bigint, %(keep_s)s::double precision, %(limit)s::integer)
