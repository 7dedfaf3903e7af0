# ruff: noqa: E501 -- SQL
"""A database with months of history: millions of ended jobs, and others in every state."""

from __future__ import annotations

from bench.server import Database

TYPES = 20
WORKERS = 50
# Few jobs have these values, and they are the oldest: a search reads everything else first.
RARE = "rare"
_STEP = 250_000
# The failed among the newest of this many ended jobs have tracebacks of 3 kB, as a list reads them.
_WHOLE = 50_000

_JOBS = """
insert into laneway.jobs (id, job_type, workspace, payload, tags, created_by, created_at, unique_key)
select gen_random_uuid(), case when n <= 3 then 'rare' else 'bench_' || n %% %(types)s end,
       case when n <= 3 then 'rare' when n %% 10 = 0 then 'team' else 'default' end,
       jsonb_build_object('path', 'documents/' || n || '.pdf', 'pages', n %% 300, 'text', repeat('x', 60)),
       case when n <= 3 then '{rare}'::text[] when n %% 10 = 1 then '{nightly}' end,
       case when n <= 3 then 'rare' when n %% 5 = 0 then 'alice' when n %% 5 = 1 then 'bob' end,
       clock_timestamp() - make_interval(secs => greatest(%(ended)s - n, 0)::double precision * 5184000 / greatest(%(ended)s, 1)),
       case when n %% 100 = 7 then 'key ' || n end
  from generate_series(%(first)s::bigint, %(last)s::bigint) n
"""
_ENDS = """
insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane,
                             worker_id, claimed_at, started_at, finished_at, result, error, error_type)
select j.seq, s.status, j.workspace, j.job_type, 0, 1, 0,
       case when j.job_type = 'rare' then 'rare' when s.status = 'cancelled' then null
            when j.job_type = 'bench_3' then 'busy' else 'default' end,
       case when s.status <> 'cancelled' then
            ('00000000-0000-0000-0000-' || lpad((case when j.job_type = 'rare' then 0 else 1 + j.seq %% %(workers)s end)::text,
             12, '0'))::uuid end,
       j.created_at + interval '2 s', j.created_at + interval '2 s', j.created_at + interval '5 s',
       case when s.status = 'completed' then '{"pages": 3}'::jsonb end,
       case when s.status = 'failed' then
            jsonb_build_object('type', 'TimeoutError', 'message', 'no answer from example.org', 'traceback', t.text) end,
       case when s.status = 'failed' then 'TimeoutError' end
  from laneway.jobs j
 cross join lateral (select case when j.seq %% 1000 = 7 then 'cancelled' when j.seq %% 50 = 0 then 'failed'
                                 else 'completed' end as status) s
 cross join lateral (select case when s.status = 'failed' and j.seq > %(ended)s - %(whole)s
                                 then (select string_agg(md5(j.seq || ' ' || line), E'\\n') from generate_series(1, 90) line)
                                 else '…' end as text) t
 where j.seq between %(first)s and %(last)s
"""
_REST = """
insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)
select ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 'worker-' || n, 'host', n, '0', '{}', 10
  from generate_series(0, %(workers)s + 1) n;
insert into laneway.worker_lanes (name, job_types, max_slots) values ('rare', '{rare}', 1), ('busy', '{bench_3}', 50);
insert into laneway.attempts (seq, attempt, outcome, lane, worker_id, claimed_at, finished_at, error)
select o.seq, 0, 'failed', o.lane, o.worker_id, o.claimed_at, o.finished_at, o.error
  from laneway.outcome o where o.status = 'failed';
insert into laneway.approvals (seq, analysis, cost, unit, analyzed_at, decision, decided_at, decided_by)
select o.seq, '{"plan": "read"}', 2, 'EUR', o.claimed_at, 'approved', o.claimed_at, 'ann'
  from laneway.outcome o where o.seq %% 100 = 3;
insert into laneway.progress (seq, attempt, done, total, at)
select o.seq, 1, 10, 10, o.finished_at from laneway.outcome o where o.seq %% 4 = 1;
insert into laneway.audit (at, actor, door, action, kind, name, outcome)
select clock_timestamp() - (%(acts)s - n) * interval '10 s', case when n <= 3 then 'rare' else 'ann' end, 'http',
       case n %% 3 when 0 then 'job.cancelled' when 1 then 'job.retried' else 'job.approved' end,
       'job', n::text, case when n %% 500 = 0 then 'refused' else 'done' end
  from generate_series(1, %(acts)s) n;
insert into laneway.schedules (name, job_type, cron)
select 'schedule_' || n, 'bench_' || n, '0 3 * * *' from generate_series(0, %(types)s - 1) n;
insert into laneway.schedule_state (name) select s.name from laneway.schedules s on conflict do nothing;
insert into laneway.schedule_slots (schedule, slot, outcome)
select 'schedule_' || n %% %(types)s, date_trunc('minute', now()) - n * interval '1 minute', 'submitted'
  from generate_series(1, %(acts)s / 2) n;
insert into laneway.bulk_runs (id, principal_id, ordered_by, verb, state)
select gen_random_uuid(), gen_random_uuid(), 'ann', 'cancel', 'done' from generate_series(1, 1000);
"""
# Nine in ten of the unfinished jobs are due.
_WAITING = """
insert into laneway.ready (seq, job_type, rank)
select j.seq, j.job_type, 0 from laneway.jobs j where j.seq > %(ended)s and j.seq %% 20 > 2;
insert into laneway.ready (seq, job_type, rank)
select j.seq, laneway.analysis_of(j.job_type), 0 from laneway.jobs j where j.seq > %(ended)s and j.seq %% 20 = 0;
insert into laneway.delayed (seq, job_type, rank, run_at)
select j.seq, j.job_type, 0, clock_timestamp() + interval '1 day'
  from laneway.jobs j where j.seq > %(ended)s and j.seq %% 20 = 1;
insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)
select j.seq, j.job_type, j.workspace, 0, clock_timestamp() + interval '1 day'
  from laneway.jobs j where j.seq > %(ended)s and j.seq %% 20 = 2;
"""


def fill(database: Database, ended: int, waiting: int) -> None:
    """Store `ended` jobs over the last 60 days, then `waiting` jobs of this moment."""
    total = ended + waiting
    settings: dict[str, object] = {"types": TYPES, "workers": WORKERS}
    settings |= {"ended": ended, "acts": total // 10, "whole": _WHOLE}
    for first in range(1, total + 1, _STEP):
        last = min(first + _STEP - 1, total)
        database.conn.execute(_JOBS.encode(), {**settings, "first": first, "last": last})
    for first in range(1, ended + 1, _STEP):
        last = min(first + _STEP - 1, ended)
        database.conn.execute(_ENDS.encode(), {**settings, "first": first, "last": last})
    for text in (_REST, _WAITING):
        for statement in text.split(";\n"):
            if statement.strip():
                database.conn.execute(statement.encode(), settings)
    database.vacuum_and_checkpoint()
