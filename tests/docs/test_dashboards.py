"""The dashboards and alert rules query existing metrics, labels and tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from laneway.observability.metrics import FAMILIES
from laneway.store.grants import grants
from tests.docs.promql import InvalidQuery, Query
from tests.support.job_factory import JobFactory

DEPLOY = Path(__file__).parents[2] / "deploy"
LABELS = {family.name: {*family.labels} for family in FAMILIES}
for family in FAMILIES:
    if family.kind == "histogram":
        del LABELS[family.name]
        for part in ("bucket", "count", "sum"):
            LABELS[f"{family.name}_{part}"] = {*family.labels, *(["le"] * (part == "bucket"))}
# Labels that Prometheus adds.
LABELS["up"] = {"job", "instance"}
READER = "laneway_test_dashboard"


def panels(name: str) -> list[dict[str, Any]]:
    return list(json.loads((DEPLOY / "grafana" / name).read_text("utf-8"))["panels"])


def alerts() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    (group,) = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text("utf-8"))["groups"]
    return list(group["rules"])


def queries() -> Iterator[tuple[str, str]]:
    for panel in panels("laneway-prometheus.json"):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for rule in alerts():
        yield rule["alert"], rule["expr"]


def test_every_query_names_existing_metrics_and_labels() -> None:
    named: set[str] = set()
    for title, text in queries():
        query = Query(text)
        assert query.metrics, title
        for metric, labels in query.metrics.items():
            assert metric in LABELS, f"{title}: {metric}"
            assert labels <= LABELS[metric], f"{title}: {metric}{labels}"
        known = set().union(*(LABELS[metric] for metric in query.metrics))
        assert query.groups <= known, f"{title}: {query.groups - known}"
        named |= query.metrics.keys()
    # Every other metric must be in a dashboard or alert.
    unseen = {name.removesuffix("_bucket") for name in named}
    exported = {family.name for family in FAMILIES}
    assert exported - unseen <= {
        "laneway_build_info", "laneway_leader_epoch", "laneway_pool_idle", "laneway_pool_size",
        "laneway_queue_depth_is_capped", "laneway_running",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["sum(", "rate(a[5m)", "a b", "a > ", "sum by lane (a)", "a{b=c}", 'a{b="c"', "a)"]
)
def test_invalid_query_is_detected(text: str) -> None:
    with pytest.raises(InvalidQuery):
        Query(text)


def test_alerts_have_a_name_a_severity_and_a_summary() -> None:
    rules = alerts()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]


def test_missing_counters_count_as_nothing_claimed() -> None:
    (rule,) = (rule for rule in alerts() if rule["alert"] == "LanewayNothingClaimed")
    assert "(sum(rate(laneway_claims_total[10m])) or vector(0)) == 0" in rule["expr"]


@pytest.fixture
def reader(dsn: str) -> Iterator[JobFactory]:
    """Jobs in many states, read with the grants of `laneway db grants reader`."""
    with (
        psycopg.connect(dsn, autocommit=True, application_name="tests") as conn,
        conn.transaction(force_rollback=True),
    ):
        factory = JobFactory(conn)
        factory.register(("greet",))
        factory.settle(factory.running(), ran_s=0.5)
        factory.failed()
        factory.running()
        factory.submit()
        conn.execute(SQL("create role {} nologin").format(Identifier(READER)))
        conn.execute(grants(["reader"], READER, conn.info.user).encode())
        conn.execute(SQL("set local role {}").format(Identifier(READER)))
        yield factory


def test_reader_can_run_every_query_of_the_sql_dashboard(reader: JobFactory) -> None:
    answers = {}
    for panel in panels("laneway-sql.json"):
        (target,) = panel["targets"]
        cursor = reader.conn.execute(target["rawSql"].encode())
        answers[panel["title"]] = cursor.fetchall()
        columns = [column.name for column in cursor.description or ()]
        if target["format"] == "time_series":
            assert columns[:3] == ["time", "metric", "value"], panel["title"]
    assert all(answers.values()), [title for title, rows in answers.items() if not rows]
    assert answers["Running"] == [(1,)]
    assert answers["Due jobs"] == [(1,)]
    assert [row[3] for row in answers["Failed last"]] == [1]


def test_dashboard_panels_use_selected_source_and_do_not_overlap() -> None:
    for name in ("laneway-prometheus.json", "laneway-sql.json"):
        taken: set[tuple[int, int]] = set()
        for panel in panels(name):
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            assert max(x for x, _ in cells) < 24
            taken |= cells
            for asked in (panel, *panel["targets"]):
                assert asked["datasource"]["uid"] == "${source}"
