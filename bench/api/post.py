"""POST /jobs next to a bare route without authentication that does one plain INSERT."""

from __future__ import annotations

import json

from bench.api.http_load import post, send_requests
from bench.api.replica import BARE, make_token, serving
from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Server

CLIENTS = 64
BODY = json.dumps({"job_type": "bench_noop", "payload": {"text": "x" * 39}}).encode()


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_post")
    token = make_token(database)
    own: list[float] = []
    bare: list[float] = []
    with serving(database) as ours, serving(database, BARE) as beside:
        for _ in range(scale.runs):
            for rates, port, request in (
                (bare, beside.port, post("/jobs", BODY)),
                (own, ours.port, post("/jobs", BODY, token)),
            ):
                database.vacuum_and_checkpoint()
                rates.append(
                    send_requests(port, request, clients=CLIENTS, seconds=scale.post_s).rate
                )
    log(
        f"post: {[round(r) for r in own]} beside {[round(r) for r in bare]} bare inserts per second"
    )
    figures.ratio("post_vs_bare_insert", own, bare)
    server.drop(database)
