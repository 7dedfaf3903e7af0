"""The pages of a pod: submit, list, stop, review. Its worker runs in the same process."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from urllib.parse import parse_qs
from uuid import UUID

import psycopg
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from laneway import Job
from laneway.errors import Refused
from laneway.integrations.fastapi import install_errors, lifespan

from .jobs import generate, lw

app = FastAPI(lifespan=lifespan(lw))
install_errors(app)

PAGE = """<!doctype html><html lang="en"><title>Ontology accelerator</title>
<nav><a href="/">Jobs</a> <a href="/ontologies">Review ontologies</a></nav>{body}</html>"""
FORM = """<form action="/ontology/submit" method="post"><label>Title <input name="title" required>
</label> <label>Text <textarea name="text" required></textarea></label>
<button>Generate</button></form>"""


def page(body: str) -> HTMLResponse:
    return HTMLResponse(PAGE.format(body=body))


def table(heads: list[str], rows: list[list[str]]) -> str:
    """An HTML table; the cells are HTML."""
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def row_of(job: Job) -> list[str]:
    payload = job.payload if isinstance(job.payload, dict) else {}
    stop = f'<form action="/jobs/{job.id}/stop" method="post"><button>Stop</button></form>'
    message = job.progress.message if job.progress else None
    return [
        str(job.id),
        escape(str(payload.get("title"))),
        job.label,
        escape(job.why_ended if job.finished_at else message or ""),
        str(job.attempt),
        escape(job.worker or ""),
        "" if job.finished_at else stop,
    ]


@app.get("/")
async def list_jobs() -> HTMLResponse:
    jobs = await lw.jobs.list(job_type=generate.job_type, limit=50)
    heads = ["Job", "Title", "Status", "Detail", "Attempt", "Pod", ""]
    return page(FORM + table(heads, [row_of(job) for job in jobs.items]))


@app.post("/ontology/submit")
async def submit(request: Request) -> RedirectResponse:
    """Accept a request and return at once; any pod may run the job."""
    form = parse_qs((await request.body()).decode(), strict_parsing=True)
    await generate.submit(title=form["title"][0], text=form["text"][0])
    return RedirectResponse("/", status_code=303)


@app.post("/jobs/{job_id}/stop")
async def stop(job_id: UUID) -> RedirectResponse:
    """Stop a job wherever it waits or runs; one that ended meanwhile stays as it is."""
    with suppress(Refused):
        await lw.jobs.cancel(job_id, "stopped on the Jobs page", by="web")
    return RedirectResponse("/", status_code=303)


@app.get("/ontologies")
async def review() -> HTMLResponse:
    async with await psycopg.AsyncConnection.connect(lw.database.dsn) as conn:
        found = await conn.execute("select title, run_id, terms from ontology order by title")
        rows = [
            [escape(title), escape(run_id), escape(", ".join(terms))]
            for title, run_id, terms in await found.fetchall()
        ]
    return page(table(["Title", "Run", "Terms"], rows))
