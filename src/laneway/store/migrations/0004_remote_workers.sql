-- phase: pre
-- safe-with: 0.1.0
-- What each worker says of itself, one that was told to claim nothing more, whose a remote one is, and what its
-- token may claim; and that browsers are told apart in the audit.

-- transport: how it reaches the database. Workers of before go on with an own login. memory_bytes: the
-- resident set of its process when it was last seen, null where it cannot tell.
alter table laneway.workers
    add column transport           text collate "C" not null default 'database'
                                   check (transport in ('in_process', 'database', 'grpc')),
    add column memory_bytes        bigint check (memory_bytes >= 0),
    add column drain_requested_at  timestamptz,
    add column drain_requested_by  text,
    add check ((drain_requested_at is null) = (drain_requested_by is null));

-- principal_id: who registered a remote worker; nobody else speaks for it. session: its newest stream; an
-- older one changes nothing here.
alter table laneway.workers
    add column principal_id  uuid,
    add column session       uuid;

-- job_types: what of its workers:claim a token is narrowed to; null: all types of its lanes.
alter table laneway.tokens add column job_types text[] check (job_types <> '{}');

-- ui: a browser's session. What is kept already holds to the narrower rule, and need not be read for this.
alter table laneway.audit
    drop constraint audit_door_check,
    add constraint audit_door_check check (door in ('http', 'ui', 'grpc', 'cli', 'mcp', 'python')) not valid;
