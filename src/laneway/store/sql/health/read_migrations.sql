-- The applied migrations, and the oldest code safe with each.
select number, name, checksum, safe_with from laneway.migrations
