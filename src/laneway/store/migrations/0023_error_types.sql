-- phase: pre
-- safe-with: 0.1.0
-- The type of the error that ended a job, so that failures are grouped and filtered without reading tracebacks.

-- Null for a job without an error, and for one that ended before this migration: its type is in `error`.
alter table laneway.outcome add column error_type text collate "C";
