-- phase: pre
-- safe-with: 0.1.0
-- Flows without jobs can be found and deleted, a retry of many sub-jobs is done in steps, webhooks have ids, and waits keep the
-- facts of the events that they took. The index takes about a second per million flows, while new flows wait.

-- Also those whose first tallies are not folded yet.
create index flows_without_jobs on laneway.flows (created_at) where jobs = 0;

-- `retried`: a job was retried, and its failed sub-jobs after that one still are to be, for the wait named in `reason`. Its
-- countdown has one more until then. Not validated, which would read the table under a lock: the rule was narrower before.
alter table laneway.arrivals drop constraint arrivals_kind_check;
alter table laneway.arrivals add constraint arrivals_kind_check
    check (kind in ('counted', 'ended', 'cancelled', 'retried')) not valid;

-- Deliveries belong to a webhook, not to its name: one that is deleted and created again has another id.
alter table laneway.webhooks add column id uuid not null default gen_random_uuid();

-- Of the event that a wait took: its payload as text in bytes, its sender and its time, which outlive the event.
alter table laneway.handler_waits
    add column event_bytes integer,
    add column event_sent_by text,
    add column event_sent_at timestamptz;
