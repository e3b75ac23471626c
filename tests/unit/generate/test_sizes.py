"""The size of an asset is bounded, in bytes of what is stored."""

from __future__ import annotations

import pytest

from lehr.base.diagnostics import Position, Severity
from lehr.generate.typing.conversion import convert
from lehr.model.asset import MAX_ASSET_BYTES, WARN_ASSET_BYTES, make_asset
from lehr.model.types import AssetType, Registry, Schema

AT = Position("assets/a.yaml", 1, 1)
REGISTRY = Registry([AssetType("t.Text", Schema({"type": "object"}, {}))])
EMPTY = len(make_asset("a", "t.Text", {"text": ""}, {}).body)  # type: ignore[arg-type]


def told(text: str) -> list[tuple[str, Severity]]:
    wanted = {"id": "a", "type": "t.Text", "payload": {"text": text}}
    asset, found = convert(wanted, REGISTRY, AT, lambda _pointer: AT)
    refused = any(item.severity is Severity.ERROR for item in found)
    assert (asset is None) == refused
    return [(item.code, item.severity) for item in found]


def test_the_limits_are_those_that_are_documented() -> None:
    assert (WARN_ASSET_BYTES, MAX_ASSET_BYTES) == (10_000, 150_000)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (WARN_ASSET_BYTES, []),
        (WARN_ASSET_BYTES + 1, [("GEN010", Severity.WARNING)]),
        (MAX_ASSET_BYTES, [("GEN010", Severity.WARNING)]),
        (MAX_ASSET_BYTES + 1, [("GEN009", Severity.ERROR)]),
    ],
)
def test_an_asset_is_warned_of_and_refused_at_exactly_these_sizes(
    size: int, expected: list[tuple[str, Severity]]
) -> None:
    assert told("x" * (size - EMPTY)) == expected


def test_bytes_count_and_not_characters() -> None:
    assert told("é" * ((MAX_ASSET_BYTES - EMPTY) // 2)) == [("GEN010", Severity.WARNING)]
    assert told("é" * ((MAX_ASSET_BYTES - EMPTY) // 2 + 1)) == [("GEN009", Severity.ERROR)]
