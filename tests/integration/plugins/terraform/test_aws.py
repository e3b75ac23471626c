"""Plans of the real AWS provider, through Lehr's client and through the terraform command: they are equal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.terraform.provider import UNKNOWN, Planned, Schema, State, Value
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.cty_types import implied_type
from lehr.plugins.terraform.values.msgpack_codec import decode, encode
from lehr.plugins.terraform.values.proposed import proposed_new
from lehr.plugins.terraform.wire.client import WireProvider
from lehr.plugins.terraform.wire.starting import Providers
from tests.terraform import aws
from tests.terraform.aws_cases import CASES
from tests.terraform.command import Terraform, needs_terraform

pytestmark = [needs_terraform, pytest.mark.timeout(1200)]

CONFIGURATION: dict[str, Any] = {
    "region": "us-east-1",
    "access_key": "test",
    "secret_key": "test",
    "skip_credentials_validation": True,
    "skip_metadata_api_check": True,
    "s3_use_path_style": True,
}
STEPS = 3
NAME = "one"
NOTHING = State(None)


class Change(NamedTuple):
    """One planned change: what is done, and to which state."""

    action: tuple[str, ...]
    before: Value
    after: Value


class Seen(NamedTuple):
    """How an attribute changes, without what differs between two runs: random ids and times."""

    action: tuple[str, ...]
    attributes: dict[str, Any]


def _variables(address: str) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL": address, "AWS_EC2_METADATA_DISABLED": "true"}


def by_terraform(folder: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Plans for creation and changes, and for no change after each; by type, step and kind."""
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    with aws.moto() as address:
        binaries = aws.provider_program().parent
        terraform = Terraform(folder, "hashicorp/aws", binaries, CONFIGURATION, _variables(address))
        for step in range(STEPS):
            terraform.write({type_: {NAME: versions[step]} for type_, versions in CASES.items()})
            for kind in ("change", "again"):
                planned = terraform.planned()
                found |= {(type_, step, kind): planned[f"{type_}.{NAME}"] for type_ in CASES}
                if kind == "change":
                    terraform.run("apply", "-input=false", "-no-color", "plan")
    return found


def _change_of(change: dict[str, Any], type_: Any) -> Change:
    after = _with_unknown(change["after"], change.get("after_unknown"), type_)
    return Change(tuple(change["actions"]), _canonical(change["before"], type_), _canonical(after, type_))


def _with_unknown(value: Any, unknown: Any, type_: Any) -> Any:
    """A value of a plan in JSON, which has its unknown parts in a tree of their own."""
    if unknown is True:
        return UNKNOWN
    match type_:
        case ["object", fields]:
            if value is None and not unknown:
                return None
            return {
                name: _with_unknown((value or {}).get(name), (unknown or {}).get(name), one)
                for name, one in fields.items()
            }
        case ["map", element] if isinstance(value, dict) or isinstance(unknown, dict):
            keys = (value or {}).keys() | (unknown or {}).keys()
            return {
                key: _with_unknown((value or {}).get(key), (unknown or {}).get(key), element) for key in keys
            }
        case [("list" | "set"), element] if isinstance(value, list):
            marks = unknown if isinstance(unknown, list) else []
            return [
                _with_unknown(one, marks[index] if index < len(marks) else None, element)
                for index, one in enumerate(value)
            ]
    return value


def _canonical(value: Value, type_: Any) -> Value:
    return decode(encode(value, type_), type_)


async def by_lehr() -> tuple[dict[tuple[str, int, str], Change], Mapping[str, Schema]]:
    """The same through the provider's protocol."""
    with aws.moto() as address:
        providers = Providers(PluginProcesses(Inline(), SystemClock()))
        program = Program((str(aws.provider_program()),), _variables(address))
        lines: list[str] = []
        provider = await providers.start(program, log=lines.append)
        await provider.configure(configured(provider.schema.provider.block, CONFIGURATION)[0])
        try:
            found: dict[tuple[str, int, str], Change] = {}
            await asyncio.gather(*(_versions(provider, type_, found) for type_ in CASES))
            assert [line for line in lines if "HTTP Request" in line] == []  # they would show secrets
            return found, {type_: provider.schema.resources[type_] for type_ in CASES}
        finally:
            await provider.close()


async def _versions(provider: WireProvider, type_: str, found: dict[tuple[str, int, str], Change]) -> None:
    block = provider.schema.resources[type_].block
    state = NOTHING
    for step, written in enumerate(CASES[type_]):
        config, problems = configured(block, written)
        assert [one for one in problems if one.severity == "error"] == [], type_
        assert [
            one for one in await provider.validate_resource(type_, config) if one.severity == "error"
        ] == []
        for kind in ("change", "again"):
            if state.value is not None:
                state = await provider.read_resource(type_, state)
            planned = await provider.plan(type_, state, proposed_new(block, state.value, config), config)
            action = _action(state.value, planned)
            if action == ("delete", "create"):
                planned = await provider.plan(type_, NOTHING, proposed_new(block, None, config), config)
            found[type_, step, kind] = Change(action, state.value, planned.value)
            if kind == "change":
                state = await _applied(provider, type_, state, planned, config, action)


def _action(prior: Value, planned: Planned) -> tuple[str, ...]:
    if prior is None:
        return ("create",)
    replaced = any(_at(prior, path) != _at(planned.value, path) for path in planned.replaces)
    return ("delete", "create") if replaced else ("no-op",) if planned.value == prior else ("update",)


def _at(value: Value, path: tuple[str | int, ...]) -> Value:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


async def _applied(
    provider: WireProvider, type_: str, state: State, planned: Planned, config: Value, action: tuple[str, ...]
) -> State:
    if action == ("no-op",):
        return state
    if action == ("delete", "create"):
        removal = await provider.plan(type_, state, None, None)
        gone = await provider.apply(type_, state, removal, None)
        assert gone.diagnostics == (), (type_, gone.diagnostics)
        state = NOTHING
    applied = await provider.apply(type_, state, planned, config)
    assert [one for one in applied.diagnostics if one.severity == "error"] == [], (type_, applied.diagnostics)
    return applied.state


def seen(change: Change) -> Seen:
    """What can be compared between two runs."""
    before = change.before if change.before is not None and change.action != ("delete", "create") else {}
    return Seen(
        change.action,
        {name: _seen(before.get(name), value) for name, value in (change.after or {}).items()},
    )


def _seen(before: Value, after: Value) -> Any:
    if after is UNKNOWN:
        return "unknown"
    return "as it is" if before is not None and before == after else after


def test_plans_are_those_of_terraform(tmp_path: Path) -> None:
    aws.provider_program()
    aws.moto_command()
    with ThreadPoolExecutor(1) as pool:  # both of them mostly wait
        planned = pool.submit(by_terraform, tmp_path)
        ours, schemas = asyncio.run(by_lehr())
        theirs = {
            key: _change_of(change, implied_type(schemas[key[0]].block))
            for key, change in planned.result().items()
        }
    different = {
        key: (seen(ours[key]), seen(change))
        for key, change in theirs.items()
        if seen(change) != seen(ours[key])
    }
    assert len(theirs) >= 60
    assert len(CASES) >= 20
    assert different == {}
