"""GET /admin/workers/status with many waiting jobs and many more ended ones."""

from __future__ import annotations

import time
from statistics import median

import httpx2

from bench import load
from bench.api.replica import make_token, serving
from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import Workers

# Longer than any response is cached.
_APART_S = 2.1

_ENDED = """
with made as (
    insert into laneway.jobs (id, job_type, payload, created_by)
    select gen_random_uuid(), 'bench_' || n %% 20, '{"text": "x"}', 'bench'
      from generate_series(1, %s) n
    returning seq, job_type
)
insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane,
                             worker_id, claimed_at, started_at, finished_at)
select m.seq, case when m.seq %% 50 = 0 then 'failed' else 'completed' end, 'default', m.job_type,
       0, 1, 0, 'default', '00000000-0000-0000-0000-000000000001', t.at, t.at, t.at + interval '1 s'
  from made m cross join lateral (
    select clock_timestamp() - make_interval(secs => random() * 86400) as at) t
"""


def _fill(database: Database, waiting: int, ended: int) -> None:
    while ended > 0:
        database.conn.execute(_ENDED.encode(), [min(ended, 500_000)])
        ended -= 500_000
    load.fill(database, waiting, lambda n: (f"bench_{n % 20}", None))
    database.vacuum_and_checkpoint()


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_status")
    _fill(database, scale.status_waiting, scale.status_ended)
    log(f"status: {scale.status_waiting:,} jobs wait, {scale.status_ended:,} have ended")
    headers = {"Authorization": f"Bearer {make_token(database)}"}
    database.pause_claims()
    took: list[float] = []
    with (
        Workers(database),
        serving(database) as replica,
        httpx2.Client(base_url=replica.url, headers=headers, timeout=60) as client,
    ):
        client.get("/admin/workers/status").raise_for_status()
        for _ in range(scale.status_reads):
            time.sleep(_APART_S)
            began = time.perf_counter()
            answer = client.get("/admin/workers/status").raise_for_status()
            took.append(1000 * (time.perf_counter() - began))
    lane = next(each for each in answer.json()["lanes"] if each["name"] == "default")
    assert lane["depth_is_capped"] or lane["depth"] == scale.status_waiting, lane
    log(f"status: {sorted(round(ms, 1) for ms in took)} ms")
    figures.put(status_ms_at_1m=median(took))
    server.drop(database)
