"""The example of OpenTelemetry: one trace from the request to the job, and a link to its retry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.examples.collector import Collector, collector
from tests.integrations.examples.programs import Environment, client_of, free_port, until

pytestmark = pytest.mark.integration

# Decodes what the exporter sent, with the packages of the example.
DECODE = """
import json, sys
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

JOB = "messaging.message.id"
spans = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        request = ExportTraceServiceRequest.FromString(file.read())
    for resource in request.resource_spans:
        names = {one.key: one.value.string_value for one in resource.resource.attributes}
        for scope in resource.scope_spans:
            spans += [
                {
                    "service": names["service.name"],
                    "name": one.name,
                    "trace": one.trace_id.hex(),
                    "id": one.span_id.hex(),
                    "parent": one.parent_span_id.hex(),
                    "links": [link.span_id.hex() for link in one.links],
                    "job": [each.value.string_value for each in one.attributes if each.key == JOB],
                }
                for one in scope.spans
            ]
print(json.dumps(spans))
"""


def test_trace_goes_from_the_request_to_the_job(dsn: str, tmp_path: Path) -> None:
    with collector() as collected:
        shop = Environment(
            "opentelemetry", "opentelemetry", tmp_path, LANEWAY_DATABASE_URL=dsn,
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collected.port}",
            OTEL_BSP_SCHEDULE_DELAY="100",
        )  # fmt: skip
        port = free_port()
        with (
            shop.start(
                "-m", "flask", "--app=shop", "run", f"--port={port}",
                more={"OTEL_SERVICE_NAME": "web"},
            ) as server,
            shop.start(
                "-m", "laneway", "worker", "shop:lw", more={"OTEL_SERVICE_NAME": "worker"}
            ) as worker,
            client_of(server, port) as client,
        ):  # fmt: skip
            job_id = client.post("/orders/7").json()
            until(lambda: b"POST /orders" in b"".join(collected.bodies), lambda: server.output)
            until(
                lambda: b"".join(collected.bodies).count(b"process send_mail") == 2,
                lambda: worker.output,
            )
            assert worker.stop() == 0
        spans = decoded(shop, collected, tmp_path)
    [request] = [each for each in spans if each["name"].startswith("POST /orders")]
    [send] = named(spans, "send send_mail")
    first, second = named(spans, "process send_mail")
    if first["links"]:
        first, second = second, first
    assert (request["service"], send["service"], first["service"]) == ("web", "web", "worker")
    assert (send["parent"], first["parent"]) == (request["id"], send["id"])
    assert request["trace"] == send["trace"] == first["trace"]
    # A retry may run hours later: it is a new trace with a link.
    assert (second["parent"], second["links"]) == ("", [send["id"]])
    assert second["trace"] != first["trace"]
    assert send["job"] == first["job"] == second["job"] == [job_id]
    assert {each["parent"] for each in named(spans, "render")} == {first["id"], second["id"]}


def named(spans: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [each for each in spans if each["name"] == name]


def decoded(shop: Environment, collected: Collector, directory: Path) -> list[dict[str, Any]]:
    paths = []
    for number, body in enumerate(list(collected.bodies)):
        paths.append(directory / f"{number}.pb")
        paths[-1].write_bytes(body)
    spans: list[dict[str, Any]] = json.loads(shop.run("-c", DECODE, *map(str, paths)))
    return spans
