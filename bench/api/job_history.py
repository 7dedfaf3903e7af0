# ruff: noqa: E501 -- SQL
"""A database with months of history: millions of ended jobs, and others in every state."""

from __future__ import annotations

from bench.server import Database

TYPES = 20
WORKERS = 50
_STEP = 250_000
# Jobs of one flow; the newest ended jobs are those of a wide one.
FLOW_JOBS = 20
WIDE_FLOW = 20_000
# Ended jobs at the beginning that are in flows of FLOW_JOBS.
_IN_FLOWS = 100_000
# The failed among the newest of this many ended jobs have tracebacks of 3 kB, as a list reads them.
_WHOLE = 50_000

# The three oldest jobs have the values `rare`: a search for them reads everything else first.
_JOBS = """
insert into laneway.jobs (id, job_type, workspace, payload, tags, created_by, created_at, unique_key, flow)
select gen_random_uuid(), case when n <= 3 then 'rare' else 'bench_' || n %% %(types)s end,
       case when n <= 3 then 'rare' when n %% 10 = 0 then 'team' else 'default' end,
       jsonb_build_object('path', 'documents/' || n || '.pdf', 'pages', n %% 300, 'text', repeat('x', 60)),
       case when n <= 3 then '{rare}'::text[] when n %% 10 = 1 then '{nightly}' end,
       case when n <= 3 then 'rare' when n %% 5 = 0 then 'alice' when n %% 5 = 1 then 'bob' end,
       clock_timestamp() - make_interval(secs => greatest(%(ended)s - n, 0)::double precision * 5184000 / greatest(%(ended)s, 1)),
       case when n %% 100 = 7 then 'key ' || n end,
       case when n > %(ended)s or n <= least(%(in_flows)s, %(ended)s - %(wide)s) then 2 + n / %(flow_jobs)s
            when n > %(ended)s - %(wide)s then 1 end
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
insert into laneway.flows (seq, id, name, workspace, tags, created_by, jobs, completed, ended_at) overriding system value
select f.flow, gen_random_uuid(), case when f.flow <= 3 then 'rare' else 'nightly ' || f.flow end, 'default',
       case when f.flow <= 3 then '{rare}'::text[] else '{nightly}' end, case when f.flow <= 3 then 'rare' else 'alice' end,
       f.jobs, f.ended, f.ended_at
  from (select j.flow, count(*) as jobs, count(o.seq) as ended,
               case when count(*) = count(o.seq) then max(o.finished_at) end as ended_at
          from laneway.jobs j left join laneway.outcome o using (seq) where j.flow is not null group by j.flow order by j.flow) f;
insert into laneway.links (seq, flow, name, parents, after_failure)
select j.seq, j.flow, 'job ' || j.seq,
       case when j.seq = %(ended)s then array(select n from generate_series(greatest(%(ended)s - 999, 1), %(ended)s - 1) n)
            when j.seq %% %(flow_jobs)s = 5 and j.seq > %(ended)s then array[j.seq + 1] end, 'cancel'
  from laneway.jobs j where j.flow is not null;
insert into laneway.bulk_runs (id, principal_id, ordered_by, verb, state)
select gen_random_uuid(), gen_random_uuid(), 'ann', 'cancel', 'done' from generate_series(1, 1000);
"""
# Three in four of the unfinished jobs are due; the others wait for a time, a person, an event or another job.
_WAITING = """
insert into laneway.ready (seq, job_type, rank)
select j.seq, j.job_type, 0 from laneway.jobs j where j.seq > %(ended)s and j.seq %% 20 > 5;
insert into laneway.ready (seq, job_type, rank)
select j.seq, laneway.analysis_of(j.job_type), 0 from laneway.jobs j where j.seq > %(ended)s and j.seq %% 20 = 0;
insert into laneway.delayed (seq, job_type, rank, run_at)
select j.seq, j.job_type, 0, clock_timestamp() + interval '1 day'
  from laneway.jobs j where j.seq > %(ended)s and j.seq %% 20 = 1;
insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)
select j.seq, j.job_type, j.workspace, 0, clock_timestamp() + interval '1 day'
  from laneway.jobs j where j.seq > %(ended)s and j.seq %% 20 = 2;
insert into laneway.waiting (seq, job_type, rank, reason, name, wake_at)
select j.seq, j.job_type, 0, r.reason, nullif(r.reason, 'jobs'), case when r.reason = 'sleep' then clock_timestamp() + interval '1 day' end
  from laneway.jobs j cross join lateral (select ('{sleep,event,jobs}'::text[])[j.seq %% 20 - 2] as reason) r
 where j.seq > %(ended)s and j.seq %% 20 between 3 and 5;
insert into laneway.handler_waits (seq, name, kind, position, workspace, event, key, until, asked_at)
select w.seq, w.name, w.reason, 1, j.workspace, case when w.reason = 'event' then 'reviewed' end,
       case when w.reason = 'event' then w.seq::text end, w.wake_at, w.since
  from laneway.waiting w join laneway.jobs j using (seq) where w.reason <> 'jobs';
insert into laneway.open_edges (parent, child, rule) select w.seq + 1, w.seq, 'cancel' from laneway.waiting w where w.reason = 'jobs';
insert into laneway.countdowns (seq, missing) select w.seq, 1 from laneway.waiting w where w.reason = 'jobs';
"""


def fill(database: Database, ended: int, waiting: int) -> None:
    """Store `ended` jobs over the last 60 days, then `waiting` jobs of this moment."""
    total = ended + waiting
    settings: dict[str, object] = {"types": TYPES, "workers": WORKERS}
    settings |= {"ended": ended, "acts": total // 10, "whole": _WHOLE}
    settings |= {"flow_jobs": FLOW_JOBS, "wide": min(WIDE_FLOW, ended // 4), "in_flows": _IN_FLOWS}
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
