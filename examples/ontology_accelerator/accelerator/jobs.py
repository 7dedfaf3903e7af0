"""The job: one ontology from a text, one at a time in each pod."""

from __future__ import annotations

from types import SimpleNamespace

import psycopg

from laneway import Lane, Laneway, SyncContext

from .generator import Generator

MAX_JOB_ATTEMPTS = 3
DAY_S = 24 * 3600
CREATE_TABLES_LOCK = 420021

lw = Laneway(
    # One job per pod, and each in a new process: the generator is not safe for more.
    slots=1,
    max_jobs_per_child=1,
    lanes=[
        # The pods bound it: each takes one job.
        Lane("ontology", max_slots=None, poll_interval_ms=1_000, stale_timeout_minutes=10),
    ],
)


@lw.on_start
def create_tables(resources: SimpleNamespace) -> None:
    with psycopg.connect(lw.database.dsn) as conn:
        conn.execute("select pg_advisory_xact_lock(%s)", [CREATE_TABLES_LOCK])
        conn.execute(
            "create table if not exists ontology"
            " (run_id text primary key, title text not null, terms text[] not null)"
        )


@lw.handler(
    "ontology_generation",
    lane="ontology",
    isolation="process",
    stale="progress",  # a pod that lives while its generator hangs does not keep the job
    max_retries=MAX_JOB_ATTEMPTS - 1,
    max_age=DAY_S,
)
def generate(ctx: SyncContext, title: str, text: str) -> str:
    """Generate an ontology; its row and the job's completion are committed together."""
    run_id = f"{str(ctx.job_id)[-6:]}-{ctx.attempt}"
    sections = text.split("\n\n")
    generator = Generator()
    for done, section in enumerate(sections):
        ctx.progress(done, len(sections), f"section {done + 1}")  # also: stop here if stopped
        generator.read(section)
    with psycopg.connect(lw.database.dsn) as conn:
        conn.execute("insert into ontology values (%s, %s, %s)", [run_id, title, generator.terms()])
        ctx.finish(conn=conn, result=run_id)  # refused if a newer attempt runs
    return run_id
