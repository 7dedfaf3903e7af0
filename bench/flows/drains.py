"""Throughput of flows of 10,000 no-op jobs, beside as many plain jobs and beside pg-boss."""

from __future__ import annotations

import json
from statistics import median
from uuid import UUID

from bench import drain, timing
from bench.app import NOOP
from bench.figures import Figures
from bench.flows import pg_boss
from bench.flows.shapes import SHAPES, Shape
from bench.load import PAYLOAD
from bench.peers.postgres import Postgres
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import Workers
from laneway.domain.job import new_job_id

DRAIN_S = 300.0
BATCH = 1000
RATED = ("fanout", "fanin", "layered")


def store(database: Database, shape: Shape) -> tuple[int, int]:
    """Store a flow in one transaction; return the first and the last number of its jobs."""
    ids = [new_job_id() for _ in shape]
    flow = new_job_id()
    with database.conn.transaction():
        database.conn.execute("select laneway.create_flow(%s, 'bench')", [flow])
        for start in range(0, len(ids), BATCH):
            _store_batch(database, flow, ids, shape, start)
    found = database.conn.execute(
        "select min(seq), max(seq) from laneway.jobs where id = any (%s)", [[ids[0], ids[-1]]]
    ).fetchone()
    assert found is not None
    return found[0], found[1]


def _store_batch(database: Database, flow: UUID, ids: list[UUID], shape: Shape, start: int) -> None:
    given = ids[start : start + BATCH]
    edges = [{"after": [str(ids[n]) for n in parents]} for parents in shape[start : start + BATCH]]
    database.conn.execute(
        "select count(*) from laneway.submit_batch(%s, %s::text::jsonb, %s,"
        " %s::text::jsonb, p_after => %s::text::jsonb, p_flow => %s)",
        [
            given,
            f"[{','.join([PAYLOAD] * len(given))}]",
            [0] * len(given),
            json.dumps([{"job_type": NOOP}]),
            json.dumps(edges),
            flow,
        ],
    )


def rate(database: Database, shape: Shape) -> float:
    """Jobs per second of a warm, idle worker that finds a whole flow at once."""
    database.empty()
    with Workers(database) as running:
        running.warm_up()
        database.pause_claims()
        first, last = store(database, shape)
        database.vacuum_and_checkpoint()
        database.resume_claims()
        running.await_ended(last, DRAIN_S)
        running.await_flows_ended(DRAIN_S)
    return timing.rate(database, first - 1, len(shape))


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_flows")
    postgres = Postgres(server)
    peers = pg_boss.kinds(postgres)
    count = scale.flow
    ours: dict[str, list[float]] = {name: [] for name in ("plain", *RATED)}
    theirs: dict[tuple[str, str], list[float]] = {}
    for turn in range(scale.flow_runs):
        ours["plain"].append(drain.workers(database, count))
        for name in RATED:
            shape = SHAPES[name](count)
            ours[name].append(rate(database, shape))
            for kind, run in peers.items():
                theirs.setdefault((name, kind), []).append(run(name, shape))
        shown = [f"{name} {rates[-1]:,.0f}/s" for name, rates in ours.items()]
        shown += [f"{kind} {name} {rates[-1]:,.0f}/s" for (name, kind), rates in theirs.items()]
        log(f"flows {turn + 1}: {', '.join(shown)}")
    figures.put(plain=median(ours["plain"]))
    for name in RATED:
        figures.ratio(f"{name}_vs_plain", ours[name], ours["plain"])
        figures.put(**{name: median(ours[name])})
        if peers:
            best = max((theirs[name, kind] for kind in peers), key=median)
            figures.ratio(f"{name}_vs_pgboss", ours[name], best)
            figures.put(**{f"pgboss_{name}": median(best)})
    postgres.close()
    server.drop(database)


def measure_chain(server: Server, figures: Figures, scale: Scale) -> None:
    """The time from one end to the next, in a chain."""
    database = server.database("bench_chain")
    rates = [rate(database, SHAPES["chain"](scale.chain)) for _ in range(scale.chain_runs)]
    log("chain: " + ", ".join(f"{1000 / each:.2f} ms" for each in rates))
    figures.put(chain_hop_ms=1000 / median(rates))
    server.drop(database)
