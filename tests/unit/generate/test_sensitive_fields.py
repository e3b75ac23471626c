"""A value in a sensitive field is refused where it stands, and never told."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from lehr.base.diagnostics import Position
from lehr.generate.typing.asset_files import read_assets
from lehr.model.secret import Secret, Sensitive
from lehr.model.types import AssetType, Registry, Schema

CANARY = "canary-4711"


class Account(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: Secret | None = None
    token: Annotated[str | Secret, Sensitive()] = ""
    environment: dict[str, str | Secret] = {}
    replicas: int = 1


SCHEMA = Schema(
    {"type": "object", "properties": {"pin": {"type": ["object", "string"]}, "n": {"type": "integer"}}},
    {},
    secrets=("/pin",),
)
REGISTRY = Registry([AssetType("test.Account", Account), AssetType("team.Card", SCHEMA)])


@pytest.mark.parametrize(
    "field",
    [
        f"password: {CANARY}",
        f"token: {CANARY}",
        f"password: [{CANARY}]",
        f"password: {{secret: {CANARY}}}",
        f"password: {{secret: 'env:A', value: {CANARY}}}",
        f"environment: {{A: {{secret: {CANARY}}}}}",
    ],
)
def test_a_value_in_a_sensitive_field_is_refused_at_its_place_and_not_told(field: str) -> None:
    text = f"id: a\ntype: test.Account\npayload:\n  replicas: many\n  {field}\n"
    made = read_assets("a.yaml", text.encode(), "1", REGISTRY)
    assert not made.assets
    assert sorted(item.code for item in made.diagnostics) == ["GEN007", "GEN016"]
    refused = next(item for item in made.diagnostics if item.code == "GEN016")
    assert refused.at is not None
    assert (refused.at.file, refused.at.line, refused.confidential) == ("a.yaml", 5, True)
    assert "lehr secret encrypt" in refused.fix
    assert CANARY not in repr(made.diagnostics)


def test_a_reference_is_taken_and_text_where_text_may_stand() -> None:
    text = (
        "{id: a, type: test.Account, payload: {password: {secret: 'env:A'}, token: {secret: 'file:/t'}, "
        "environment: {A: plain}}}"
    )
    made = read_assets("a.yaml", text.encode(), "1", REGISTRY)
    assert not made.diagnostics
    assert [place for place, _ in REGISTRY.secrets(made.assets[0])] == ["/payload/password", "/payload/token"]


def test_fields_that_a_declared_type_calls_secret_hold_references_too() -> None:
    made = read_assets(
        "a.yaml", f"{{id: a, type: team.Card, payload: {{pin: {CANARY}}}}}".encode(), "1", REGISTRY
    )
    assert [item.code for item in made.diagnostics] == ["GEN016"]
    assert made.diagnostics[0].at == Position("a.yaml", 1, 36)
    assert CANARY not in repr(made.diagnostics)
    good = b"{id: a, type: team.Card, payload: {pin: {secret: 'env:PIN'}}}"
    assert not read_assets("a.yaml", good, "1", REGISTRY).diagnostics
