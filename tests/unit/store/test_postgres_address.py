"""What an address of a store says, and what is never said of it."""

from __future__ import annotations

import pytest

from lehr.base.errors import StalledError
from lehr.store.postgres.address import Address

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("text", "place", "schema"),
    [
        ("postgresql://db.example.org/lehr", "postgresql://db.example.org/lehr", "lehr"),
        ("postgres://ana@db:5433/x", "postgresql://db:5433/x", "lehr"),
        (f"postgresql://ana:{SECRET}@db/x?sslmode=require", "postgresql://db/x", "lehr"),
        (f"postgresql://db/x?user=ana&password={SECRET}", "postgresql://db/x", "lehr"),
        ("postgresql://db/x?schema=shop", "postgresql://db/x?schema=shop", "shop"),
        ("postgresql:///x?host=/run/pg&port=5433", "postgresql:///run/pg:5433/x", "lehr"),
        ("postgresql://[::1]:5433/x", "postgresql://::1:5433/x", "lehr"),
        ("postgresql:///", "postgresql:///", "lehr"),
    ],
)
def test_a_place_is_told_without_credentials(text: str, place: str, schema: str) -> None:
    address = Address(text)
    assert (address.place, address.schema) == (place, schema)
    assert SECRET not in address.url + repr(address) + str(address)


@pytest.mark.parametrize(
    "given", ["postgresql://ana@db:5433/x?sslmode=require&schema=shop", "postgresql:///x"]
)
def test_what_is_remembered_leads_to_the_same_place(given: str) -> None:
    address = Address(given)
    again = Address(address.url)
    assert (again.conninfo, again.schema, again.url) == (address.conninfo, address.schema, address.url)


def test_what_a_person_says_counts_more_than_our_defaults() -> None:
    assert "connect_timeout=60" in Address("postgresql://db/x?connect_timeout=60").conninfo


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"sqlite:{SECRET}",
        f"postgresql://ana:{SECRET}@db:port/x",
        f"postgresql://ana:{SECRET}%zz@db/x",
        f"postgresql://db/x?paßword={SECRET}",
        f"postgresql://db/x?{SECRET}",
        f"postgresql://[{SECRET}/x",
        f"postgresql://db/x?schema={SECRET}-",
        "postgresql://db/x?schema=pg_catalog",
        "postgresql://db/x?schema=",
        "postgresql://db/x?schema=a%22;drop",
    ],
)
def test_what_cannot_be_read_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(StalledError) as caught:
        Address(text)
    assert caught.value.fix
    seen = [str(caught.value), str(caught.value.__cause__)]
    assert SECRET not in "".join(seen)
