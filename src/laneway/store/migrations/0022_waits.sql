-- phase: pre
-- safe-with: 0.1.0
-- The jobs for which the handler of a running attempt waits, so that explain can name a circle.

-- Numbers of jobs; null: none. The note ends with the attempt, because it is part of its lease.
alter table laneway.lease add column waits_for bigint[];
