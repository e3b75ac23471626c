"""References to secrets say where a secret is, are found wherever they stand, and never repeat a value."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.model.secret import Secret, SecretBackend, Sensitive, reference_problem
from lehr.model.types import AssetType, Registry, Schema, sensitive_values

CANARY = "hunter2-canary"


class Inner(msgspec.Struct, frozen=True):
    key: Secret


class Holder(msgspec.Struct, frozen=True):
    password: Secret | None = None
    environment: dict[str, str | Secret] = {}
    inner: list[Inner] = []
    old: Annotated[str | Secret, Sensitive()] = ""


SCHEMA = Schema({"type": "object"}, {}, secrets=("/password", "/users/*/key"))
REGISTRY = Registry([AssetType("test.Holder", Holder), AssetType("team.Account", SCHEMA)])


@pytest.mark.parametrize(
    ("text", "backend", "place", "key"),
    [
        ("env:DB_PASSWORD", SecretBackend.ENV, "DB_PASSWORD", ()),
        ("file:/run/secrets/a#b", SecretBackend.FILE, "/run/secrets/a#b", ()),
        ("age:secrets/db.yaml.age#db.password", SecretBackend.AGE, "secrets/db.yaml.age", ("db", "password")),
        ("sops:prod.yaml", SecretBackend.SOPS, "prod.yaml", ()),
    ],
)
def test_a_reference_says_who_keeps_it_and_where(
    text: str, backend: SecretBackend, place: str, key: tuple[str, ...]
) -> None:
    secret = Secret(text)
    assert (secret.backend, secret.place, secret.key) == (backend, place, key)


@pytest.mark.parametrize(
    "text",
    [
        CANARY,
        "",
        "env:",
        f"env:{CANARY}",
        "env:LEHR_AGE_IDENTITY",
        "vault:x",
        "age:../x.age",
        "age:/x.age",
        "age:a//b",
        "age:x.age#",
        "age:x.age#a..b",
        "sops:",
        "file:a\nb",
        "file:" + "x" * 1000,
    ],
)
def test_what_is_no_reference_is_refused_and_not_told(text: str) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert({"secret": text}, Secret)
    assert CANARY not in str(error.value)
    assert CANARY not in str(reference_problem({"secret": text}))


@pytest.mark.parametrize(
    "value", [CANARY, 4711, [CANARY], {"secret": [CANARY]}, {"secret": "env:A", CANARY: 1}, {"value": CANARY}]
)
def test_why_a_value_is_no_reference_is_said_without_the_value(value: Any) -> None:
    problem = reference_problem(value)
    assert problem is not None
    assert CANARY not in problem


def test_references_are_found_in_fields_maps_lists_and_declared_types() -> None:
    whole = {
        "password": {"secret": "env:A"},
        "environment": {"B": {"secret": "env:B", "version": "2"}, "C": "plain"},
        "inner": [{"key": {"secret": "age:c.age"}}],
        "old": {"secret": "file:/d"},
    }
    asset = make_asset(AssetId("h"), "test.Holder", msgspec.convert(whole, Holder), {})
    assert REGISTRY.secrets(asset) == [
        ("/payload/password", Secret("env:A")),
        ("/payload/environment/B", Secret("env:B", "2")),
        ("/payload/inner/0/key", Secret("age:c.age")),
        ("/payload/old", Secret("file:/d")),
    ]
    payload = {"password": {"secret": "env:A"}, "users": [{"key": {"secret": "age:x"}}], "secret": "env:Z"}
    declared = make_asset(AssetId("a"), "team.Account", payload, {})
    assert REGISTRY.secrets(declared) == [
        ("/payload/password", Secret("env:A")),
        ("/payload/users/0/key", Secret("age:x")),
    ]


def test_an_asset_without_references_has_none() -> None:
    assert REGISTRY.secrets(make_asset(AssetId("h"), "test.Holder", Holder(old="x"), {})) == []


def test_a_change_of_a_reference_changes_the_digest_of_the_asset_and_nothing_else() -> None:
    holder = Holder(Secret("age:a.age"), {"secret": "text", "B": Secret("env:B")})
    asset = make_asset(AssetId("h"), "test.Holder", holder, {})

    def sealed(secret: Secret) -> Secret:
        digest = "d" * 40 if secret.backend.encrypted else None
        return msgspec.structs.replace(secret, digest=digest)

    after = REGISTRY.with_secrets(asset, sealed)
    assert after.digest != asset.digest
    payload = REGISTRY.payload(after, Holder)
    assert payload.password == Secret("age:a.age", "", "d" * 40)
    assert payload.environment == holder.environment
    assert REGISTRY.with_secrets(after, sealed) is after


def test_sensitive_fields_are_those_that_must_hold_a_reference() -> None:
    value = {
        "password": CANARY,
        "environment": {"A": "plain", "B": {"secret": CANARY}},
        "inner": [{"key": CANARY}],
        "old": CANARY,
    }
    assert [place for place, _ in sensitive_values(value, Holder, "")] == [
        "/password",
        "/environment/B",
        "/inner/0/key",
        "/old",
    ]
    found = sensitive_values({"password": "x", "users": [{"key": "y"}, {}]}, SCHEMA, "/payload")
    assert list(found) == [("/payload/password", "x"), ("/payload/users/0/key", "y")]
