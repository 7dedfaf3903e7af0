-- phase: pre
-- safe-with: 0.1.0
-- Claims enforce the approval policy in force.

-- The retries of a job when a claim sent it back for its approval; null: no claim did.
alter table laneway.approvals add column sent_back integer check (sent_back >= 0);
