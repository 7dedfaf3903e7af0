"""The HTTP API of a replica: ingest now or in the background, and follow the job."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import Body, FastAPI, HTTPException, Query
from fastapi.responses import JSONResponse, RedirectResponse

from laneway import Job
from laneway.integrations.fastapi import install_errors, lifespan

from .jobs import connect, ingest, lw

app = FastAPI(lifespan=lifespan(lw))  # with a worker; LANEWAY_WORKER=off: without
install_errors(app)
app.mount("/laneway", lw.asgi())

PREFIX = "/api/v1/workspaces/{workspace}"
INGEST_TIMEOUT_S = 60


@app.post(PREFIX + "/knowledge-bases/{knowledge_base}/ingest")
async def start_ingest(
    workspace: str,
    knowledge_base: str,
    text: Annotated[str, Body(embed=True)],
    is_async: Annotated[bool, Query(alias="async")] = False,
) -> JSONResponse:
    """Store a document and its job in one transaction: both exist, or neither."""
    document = uuid4()
    async with await connect() as conn:
        await conn.execute(
            "insert into workbench.document values (%s, %s, %s, %s)",
            [document, workspace, knowledge_base, text],
        )
        submitting = ingest.options(conn=conn, workspace=workspace, tags=[knowledge_base])
        job = await submitting.submit(document=document)
    lw.wake([job])  # after the commit
    if is_async:
        pointer = f"/api/v1/workspaces/{workspace}/jobs/{job.id}"
        accepted = {"job": str(job.id), "status": job.status, "events": f"{pointer}/events"}
        return JSONResponse(accepted, status_code=202, headers={"Location": pointer})
    return JSONResponse(await job.wait(INGEST_TIMEOUT_S))


async def find(workspace: str, job_id: UUID) -> Job:
    job = await lw.get(job_id)
    if job.workspace != workspace:
        raise HTTPException(404)
    return job


@app.get(PREFIX + "/jobs/{job_id}")
async def read_job(workspace: str, job_id: UUID) -> dict[str, Any]:
    job = await find(workspace, job_id)
    processed = job.progress.done if job.progress else 0
    return {"job": job.id, "status": job.status, "processed": processed, "result": job.result}


@app.get(PREFIX + "/jobs/{job_id}/events")
async def follow_job(workspace: str, job_id: UUID) -> RedirectResponse:
    """Redirect to the stream of this replica, which reports what any replica does to the job.

    The stream needs a token that may read the jobs of the workspace.
    """
    await find(workspace, job_id)
    return RedirectResponse(f"/laneway/jobs/{job_id}/stream", status_code=307)
