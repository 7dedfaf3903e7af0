"""A FastAPI application with durable jobs: a worker inside it, and the API under a prefix.

    uvicorn examples.fastapi_app:app          # as you would run it
    python examples/fastapi_app.py            # the same, with a client that calls it

Unlike with BackgroundTasks, an accepted mail is sent even if the process ends first: another
process runs the job. The second command prints:

    POST /orders/7: 202
    job: completed, mail for order 7
    GET /mails/abc: 422, invalid_input
    GET /laneway/jobs without a token: 401
"""

import asyncio
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI

from laneway import Context, Laneway
from laneway.integrations.fastapi import install_errors, lifespan

lw = Laneway()


@lw.handler("send_mail")
async def send_mail(ctx: Context, order: int) -> str:
    return f"mail for order {order}"


app = FastAPI(lifespan=lifespan(lw))
install_errors(app)
app.mount("/laneway", lw.asgi())


@app.post("/orders/{order}", status_code=202)
async def place_order(order: int) -> dict[str, str]:
    # With BackgroundTasks: tasks.add_task(send_mail, order)
    job = await lw.submit("send_mail", {"order": order})
    return {"job": str(job.id)}


@app.get("/mails/{job_id}")
async def read_mail(job_id: str) -> dict[str, Any]:
    result = await lw.wait(job_id, timeout=30)
    return {"status": (await lw.get(job_id)).status, "result": result}


async def main() -> None:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    serving = asyncio.ensure_future(server.serve())
    while not server.started and not serving.done():  # noqa: ASYNC110 -- uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        placed = await client.post("/orders/7")
        print(f"POST /orders/7: {placed.status_code}")
        mail = (await client.get(f"/mails/{placed.json()['job']}")).json()
        print(f"job: {mail['status']}, {mail['result']}")
        wrong = await client.get("/mails/abc")
        print(f"GET /mails/abc: {wrong.status_code}, {wrong.json()['code']}")
        anonymous = await client.get("/laneway/jobs")
        print(f"GET /laneway/jobs without a token: {anonymous.status_code}")
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
