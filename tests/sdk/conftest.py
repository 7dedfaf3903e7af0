"""The TypeScript client on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.conftest import People, people
from tests.conformance.test_conformance import is_built
from tests.http.threaded_server import served
from tests.sdk.driver import Driver, typescript_client

__all__ = ["client", "people", "token"]


@pytest.fixture(autouse=True)
def _built() -> None:
    if not is_built():
        pytest.fail("the TypeScript SDK is not built, or has changed since: make sdk-typescript")


@pytest.fixture
def token(people: People) -> str:
    return people.new("admin", "platform_admin").token


@pytest.fixture
def client(dsn: str, token: str) -> Iterator[Driver]:
    with served(dsn) as url, typescript_client(url, token) as driver:
        yield driver
