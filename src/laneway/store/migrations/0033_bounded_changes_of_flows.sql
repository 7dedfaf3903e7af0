-- phase: pre
-- safe-with: 0.1.0
-- Gives the functions their version: changes of wide flows and of many sub-jobs run in bounded steps. Also: ids of webhooks, and
-- what waits keep of the events that they took.

-- Deliveries belong to a webhook, not to its name: one that is deleted and created again has another id.
alter table laneway.webhooks add column id uuid not null default gen_random_uuid();

-- Of the event that a wait took: its payload as text in bytes, its sender and its time, which outlive the event.
alter table laneway.handler_waits
    add column event_bytes integer,
    add column event_sent_by text,
    add column event_sent_at timestamptz;
