"""Counters have a bounded number of names."""

from __future__ import annotations

from uuid import uuid4

from laneway.observability.counters import (
    MAX_JOB_TYPES,
    MAX_LANES,
    MAX_ROUTES,
    OTHER,
    Counters,
    Histogram,
)
from laneway.observability.metrics import (
    FAMILIES,
    OF_WORKERS,
    MetricsSnapshot,
    of_process,
    of_server,
    of_worker,
)


def test_names_beyond_the_bound_are_counted_together() -> None:
    counters = Counters()
    for i in range(MAX_JOB_TYPES * 2):
        counters.claimed(f"lane-{i}", 1)
        counters.ends(f"lane-{i}", f"type-{i}").add("completed", 0.1)
        counters.answered("GET", f"/made-up/{i}", 200, 0.1)
    assert len(counters.claims) == MAX_LANES + 1
    assert counters.claims[OTHER] == MAX_JOB_TYPES * 2 - MAX_LANES
    assert len(counters.durations) == MAX_JOB_TYPES + 1
    assert counters.outcomes[OTHER, OTHER, "completed"] == MAX_JOB_TYPES
    assert set(counters.running.values()) == {0}
    for i in range(MAX_ROUTES):
        counters.answered(f"METHOD{i}", f"/more/{i}", 200, 0.1)
    assert len({route for _, route, _ in counters.requests}) == MAX_ROUTES + 1
    assert {method for method, _, _ in counters.requests} == {"GET", OTHER}


def test_value_falls_below_the_first_bound_it_does_not_exceed() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.5):
        histogram.add(value)
    assert (histogram.counts, histogram.total) == ([2, 1, 1], 5.5)


def test_leader_is_known_until_it_resigns() -> None:
    counters, holder = Counters(), uuid4()
    counters.leads(holder, 7)
    assert "laneway_leader_epoch 7.0" in _page(counters)
    counters.leads(holder, None)
    assert "laneway_is_leader 0.0" in _page(counters)


def test_every_process_metric_exists_before_first_count() -> None:
    page = _page(Counters())
    for family in OF_WORKERS:
        assert f"# TYPE {family.name} {family.kind}\n" in page
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert family.name.startswith("laneway_")
        assert (family.kind == "counter") == family.name.endswith("_total")


def test_openmetrics_is_returned_on_request() -> None:
    page = MetricsSnapshot(lambda: of_worker(Counters()))
    body, kind = page.text("application/openmetrics-text;version=junk;q=0.5,*/*;q=0.1")
    assert kind.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    body, kind = page.text("")
    assert kind.startswith("text/plain")


def _page(counters: Counters) -> str:
    made = [*of_worker(counters), *of_process(counters), *of_server(counters, 3)]
    return MetricsSnapshot(lambda: made).text("")[0].decode()
