"""The store in PostgreSQL against the model of the embedded one."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings

from lehr.sdk.store import CheckableStore
from lehr.store.postgres import Address, PostgresStore
from tests.integration.store.conftest import fresh
from tests.postgres import PostgresServer
from tests.property.test_store_property import StoreOfIncarnations


class StoreInPostgresql(StoreOfIncarnations):
    """The same, on a real server; a schema for each run."""

    server: ClassVar[PostgresServer]

    def __init__(self) -> None:
        super().__init__()
        self.address: Address = fresh(self.server)

    def opened(self) -> CheckableStore:
        return PostgresStore(self.address)


@pytest.fixture(autouse=True)
def _on(server: PostgresServer) -> None:
    StoreInPostgresql.server = server


StoreInPostgresql.TestCase.settings = settings(
    max_examples=4,
    stateful_step_count=10,
    suppress_health_check=[HealthCheck.too_slow],
)
test_every_incarnation_stays_what_it_was = pytest.mark.timeout(120)(StoreInPostgresql.TestCase)
