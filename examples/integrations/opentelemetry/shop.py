"""A shop whose traces go from the request to the job.

`flask --app shop run`, and `laneway worker shop:lw`.
`OTEL_EXPORTER_OTLP_ENDPOINT` names the collector, `OTEL_SERVICE_NAME` this process.
"""

from flask import Flask, jsonify
from flask.typing import ResponseReturnValue
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.flask import FlaskInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from laneway import Laneway, Retry, SyncContext

# Laneway traces as soon as there is a tracer provider.
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")

lw = Laneway()
app = Flask(__name__)
FlaskInstrumentor().instrument_app(app)


@lw.handler("send_mail")
def send_mail(ctx: SyncContext, order: int) -> str:
    """Send the mail of an order, at the second attempt."""
    with tracer.start_as_current_span("render"):
        mail = f"mail for order {order}"
    if ctx.attempt == 1:
        raise Retry(after=0)
    return mail


@app.post("/orders/<int:order>")
def place_order(order: int) -> ResponseReturnValue:
    """Submit the mail of an order."""
    job = lw.sync.submit("send_mail", {"order": order})
    return jsonify(str(job.id)), 202


@lw.on_stop
def flush(resources) -> None:
    """Send the spans that are still in memory."""
    provider.force_flush()
