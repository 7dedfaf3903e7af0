-- What of the log is visible now, as a value: whoever reads on from it misses nothing that comes later. And which log it is.
select laneway.seen_log()::text, laneway.log_identity()
