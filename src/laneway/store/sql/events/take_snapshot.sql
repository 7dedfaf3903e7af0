-- What of the log is visible now, as a value: whoever reads on from it misses nothing that comes later.
select laneway.seen_log()::text
