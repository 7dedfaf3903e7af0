-- The current snapshot of the log, and which log it is: a reader that continues from it misses nothing later.
select laneway.log_snapshot()::text, laneway.log_identity()
