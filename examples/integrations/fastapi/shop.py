"""A shop that sends mail by jobs, with a worker inside: `uvicorn shop:app`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request

from laneway import Context, Laneway
from laneway.integrations.fastapi import install_errors, lifespan

lw = Laneway()


@lw.handler("send_mail")
async def send_mail(ctx: Context, order: int) -> str:
    return f"mail for order {order}"


@asynccontextmanager
async def shop_lifespan(app: FastAPI) -> AsyncIterator[dict[str, str]]:
    yield {"shop": "open"}  # open your pools before this line: jobs can use them until they end


app = FastAPI(lifespan=lifespan(lw, shop_lifespan))
install_errors(app)
app.mount("/laneway", lw.asgi())


@app.post("/orders/{order}", status_code=202)
async def place_order(request: Request, order: int) -> str:
    job = await request.state.laneway.submit("send_mail", {"order": order})
    return str(job.id)


@app.get("/mails/{job_id}")
async def read_mail(job_id: str) -> object:
    return await lw.wait(job_id, timeout=30)
