"""`laneway bench` names what limits the rate; `laneway doctor` says what two times allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laneway.benchmark.bottleneck import Load, limit_of, notes
from laneway.benchmark.load import ConnectionSamples, MachineTimes, Work, cores_used, work_of
from laneway.benchmark.report import BenchmarkReport, Rates
from laneway.control.commit_speed import describe
from laneway.store.benchmark import ActiveConnection
from laneway.store.health import CommitSpeed

SPEED = CommitSpeed(0.0002, 0.0014)
IDLE = Load(worker_cores=0.1, database_cores=0.1, connection={}, machine=None, processors=8)


@pytest.mark.parametrize(
    "waits, work",
    [
        ((None, None), "cpu"),
        (("IO", "WALSync"), "commit"),
        (("IO", "WalSync"), "commit"),
        (("LWLock", "WALWrite"), "commit"),
        (("IPC", "SyncRep"), "standby"),
        (("Lock", "transactionid"), "lock"),
        (("IO", "DataFileRead"), "read"),
        (("Timeout", "VacuumDelay"), "other"),
    ],
)
def test_wait_of_a_connection_names_its_work(
    waits: tuple[str | None, str | None], work: Work
) -> None:
    assert work_of(ActiveConnection(7, *waits)) == work


def test_busiest_connection_and_cores_come_from_all_samples() -> None:
    samples = ConnectionSamples()
    samples.add([ActiveConnection(1, None, None), ActiveConnection(2, None, None)])
    samples.add([ActiveConnection(1, "IO", "WalSync")])
    samples.add([ActiveConnection(1, None, None)])
    samples.add([])
    assert samples.busiest() == {"cpu": 0.5, "commit": 0.25}
    assert samples.cores() == 0.75
    assert (ConnectionSamples().busiest(), ConnectionSamples().cores()) == ({}, 0.0)


@pytest.mark.parametrize(
    "load, begins",
    [
        (replace(IDLE, worker_cores=0.9), "The CPU of the worker"),
        (replace(IDLE, connection={"cpu": 0.7, "commit": 0.2}), "The CPU of the database"),
        (replace(IDLE, connection={"cpu": 0.2, "commit": 0.7}), "The disk of the database"),
        (replace(IDLE, connection={"standby": 0.7}), "A synchronous standby"),
        (replace(IDLE, connection={"lock": 0.7}), "Locks"),
        (replace(IDLE, connection={"read": 0.7}), "Reads from disk"),
        (replace(IDLE, connection={"other": 0.7}), "The database"),
        (IDLE, "Round trips to the database"),
        (replace(IDLE, machine=0.99, worker_cores=4.0), "The processors of this machine"),
        (replace(IDLE, machine=0.99), "Other programs"),
        (replace(IDLE, machine=0.5, worker_cores=0.9), "The CPU of the worker"),
    ],
)
def test_greatest_share_of_the_time_limits_the_rate(load: Load, begins: str) -> None:
    sentence = limit_of(load, SPEED, None)
    assert sentence.startswith(f"{begins} limit"), sentence
    assert sentence.endswith(".")


def test_pooler_is_named_with_the_round_trips_through_it() -> None:
    assert "0.20 ms through the pooler" in limit_of(IDLE, SPEED, "transaction")
    assert "takes an unknown time" in limit_of(
        replace(IDLE, connection={"commit": 1}), CommitSpeed(0.001, None), None
    )


def test_notes_name_settings_that_change_the_figures() -> None:
    names = ("fsync", "synchronous_commit", "shared_buffers", "max_wal_size")
    assert notes(dict(zip(names, ("on", "on", "16384", "1024"), strict=True)), None) == []
    bad = dict(zip(names, ("off", "off", "2048", "64"), strict=True))
    found = notes(bad, "transaction")
    begins = ["synchronous_commit is off", "fsync is off", "shared_buffers is 16 MB",
              "max_wal_size is 64 MB", "A transaction pooler"]  # fmt: skip
    assert [text[: len(begin)] for text, begin in zip(found, begins, strict=True)] == begins


def test_cpu_of_the_worker_leaves_out_its_start() -> None:
    # Two seconds of start at a full core, then half a core.
    readings = [(0.0, 0.0), (2.0, 2.0), (4.0, 3.0), (6.0, 4.0), (8.0, 5.0)]
    assert cores_used(readings) == 0.5
    assert cores_used(readings[:1]) == cores_used([]) == 0.0


def test_busy_share_of_the_machine_is_of_the_time_between_two_readings() -> None:
    assert MachineTimes(100, 1000).busy_share(MachineTimes(190, 1100)) == 0.9
    assert MachineTimes(100, 1000).busy_share(MachineTimes(100, 1000)) == 0.0


def test_report_compares_with_the_raw_limit() -> None:
    rates = Rates(0.2, 2.0, 40_000, 50_000, 10_000, 400, 20_000, 3.0, 9.0)
    report = BenchmarkReport(rates, IDLE, "The limit.", [])
    figures = report.to_dict()
    assert figures["submit_many_vs_raw"] == 0.25
    assert figures["drain_vs_raw"] == 0.4
    # 500 commits of one connection per second.
    assert figures["submit_vs_commits"] == 0.8
    assert ("drain, one worker process", "20,000/s", "0.40") in list(report.rows())
    unknown = BenchmarkReport(replace(rates, commit_ms=None), IDLE, "The limit.", [])
    assert unknown.to_dict()["submit_vs_commits"] is None


@pytest.mark.parametrize(
    "speed, says",
    [
        (CommitSpeed(0.0002, 0.001), "neither is slow"),
        (CommitSpeed(0.0002, 0.02), "commits limit the rate: they wait for a disk"),
        (CommitSpeed(0.02, 0.021), "the network limits the rate"),
        (CommitSpeed(0.02, None), "the network limits the rate"),
        (CommitSpeed(0.0002, None), "commits were not timed"),
    ],
)
def test_doctor_says_which_time_limits_the_rate(speed: CommitSpeed, says: str) -> None:
    assert says in describe(speed)
