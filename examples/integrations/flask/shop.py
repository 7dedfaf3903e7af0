"""A shop that sends mail by jobs: requests submit them, without an event loop."""

import time

from flask import Flask, jsonify
from flask.typing import ResponseReturnValue

from laneway import Laneway, SyncContext
from laneway.integrations.flask import install_errors

lw = Laneway()
app = Flask(__name__)
install_errors(app)


@lw.handler("send_mail")
def send_mail(ctx: SyncContext, order: int, seconds: float = 0) -> str:
    """Send the mail of an order."""
    time.sleep(seconds)
    return f"mail for order {order}"


@app.post("/orders/<int:order>")
def place_order(order: int) -> ResponseReturnValue:
    """Submit the mail of an order."""
    job = lw.sync.submit("send_mail", {"order": order})
    return jsonify(str(job.id)), 202


@app.post("/slow-orders/<int:order>")
def place_slow_order(order: int) -> ResponseReturnValue:
    """Submit a mail that takes a while."""
    job = send_mail.sync.submit(order=order, seconds=3)
    return jsonify(str(job.id)), 202


@app.get("/mails/<job_id>")
def read_mail(job_id: str) -> ResponseReturnValue:
    """Wait for the mail of an order."""
    return jsonify(lw.sync.wait(job_id, timeout=30))
