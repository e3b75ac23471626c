"""A real PostgreSQL server for the tests of its store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from lehr.store.postgres import Address
from tests.postgres import PostgresServer

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """Shared by all tests: who stops it starts it again."""
    running = PostgresServer()
    try:
        running.start()
        yield running
    finally:
        running.close()


def fresh(server: PostgresServer) -> Address:
    """A place for a store, where there is nothing yet."""
    return Address(f"{server.url('postgres')}&schema=test_{next(_numbers)}")


@pytest.fixture
def address(server: PostgresServer) -> Address:
    return fresh(server)


@pytest.fixture
def make_address(server: PostgresServer) -> Callable[[], Address]:
    """One for each call."""
    return lambda: fresh(server)
