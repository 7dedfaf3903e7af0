-- Releases what the running attempt holds of these limits beyond what it keeps.
select laneway.release_limits(%(seq)s::bigint, %(attempt)s::integer, %(names)s::text[], %(keeps)s::integer[])
