"""A shop whose jobs report their failures to Sentry; `SENTRY_DSN` names the project.

`flask --app shop run`, and `laneway worker shop:lw`
"""

import sentry_sdk
from flask import Flask, jsonify
from flask.typing import ResponseReturnValue

from laneway import Laneway, SyncContext
from laneway.integrations import sentry

# Otherwise Sentry gets the arguments of handlers, as local variables of their frames.
sentry_sdk.init(include_local_variables=False)

lw = Laneway()
sentry.install(lw)
app = Flask(__name__)


@lw.handler("charge", max_retries=1)
def charge(ctx: SyncContext, order: int, card: str) -> None:
    """Charge a card that is always refused."""
    raise RuntimeError(f"order {order} was refused")


@app.post("/orders/<int:order>")
def place_order(order: int) -> ResponseReturnValue:
    """Submit a job that fails."""
    job = lw.sync.submit("charge", {"order": order, "card": "4111-1111"})
    return jsonify(str(job.id)), 202
