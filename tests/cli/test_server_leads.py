"""`laneway server` alone ends what is due: no worker is needed for that."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from laneway import __version__
from tests.cli.test_server import started
from tests.support.store_client import StoreClient

PATIENCE_S = 60.0


def test_server_alone_ends_lapsed_cancelled_expired_and_old_jobs(dsn: str, tmp_path: Path) -> None:
    # Two workers: several jobs that one worker loses are not charged.
    with StoreClient(dsn) as backend, StoreClient(dsn) as other:
        lost, stopped = backend.running(max_retries=0), other.running()
        backend.cancel(stopped.seq)
        backend.do("update laneway.lease set lease_until = clock_timestamp()")
        backend.do("insert into laneway.job_types (name, approval) values ('asks', 'always')")
        unapproved = backend.submit("asks")
        backend.do("update laneway.awaiting set expires_at = clock_timestamp()")
        old = backend.submit("elder")
        backend.do("insert into laneway.deadlines (seq, at) values (%s, clock_timestamp())", old)
        wanted = {
            lost.seq: "failed", stopped.seq: "cancelled", unapproved: "cancelled", old: "failed",
        }  # fmt: skip
        with started(dsn, "server", cwd=tmp_path) as (process, _):
            (line,) = [
                line
                for line in (tmp_path / "stderr").read_text("utf-8").splitlines()
                if "server listens on" in line
            ]
            assert f": laneway {__version__}, database " in line
            assert str(conninfo_to_dict(dsn)["password"]) not in line
            deadline = time.monotonic() + PATIENCE_S
            while (
                found := dict(backend.rows("select seq, status from laneway.jobs_view"))
            ) != wanted:
                assert time.monotonic() < deadline, found
                time.sleep(0.05)
            (name,) = backend.one(
                "select w.name from laneway.workers w join laneway.leader l on l.holder = w.id"
            ).splitlines()
            assert name.endswith(" server")
            process.terminate()
            assert process.wait(100) == 0
        # It resigned: the next one to ask leads at once.
        assert backend.one("select held_until <= clock_timestamp() from laneway.leader")


@pytest.mark.parametrize("grpc", [(), ("--grpc", "--grpc-port", "0")])
def test_server_that_shall_not_lead_does_not(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grpc: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LANEWAY_SERVER_LEADS", "false")
    with StoreClient(dsn) as backend, started(dsn, "server", *grpc, cwd=tmp_path) as (process, _):
        process.terminate()
        assert process.wait(100) == 0
        assert backend.rows("select 1 from laneway.leader") == []
