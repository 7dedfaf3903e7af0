-- The migrations that were applied, and the oldest code each is safe with.
select number, name, checksum, safe_with from laneway.migrations
