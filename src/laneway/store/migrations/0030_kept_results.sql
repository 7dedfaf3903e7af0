-- phase: pre
-- safe-with: 0.1.0
-- Waiting jobs and open flows can be counted.
-- The index of waiting jobs takes about a second per million of them, while ends that release one wait.

-- With another collation than the column, so that only counts use it: a plan made for few jobs would prefer it to the number.
create index waiting_reason on laneway.waiting (reason collate "POSIX", since);

-- Whether a job of it has not ended, as of the last folded tallies. Null: none is folded since this migration.
alter table laneway.flows add column is_open boolean;
create index flows_open on laneway.flows (seq) where is_open;
