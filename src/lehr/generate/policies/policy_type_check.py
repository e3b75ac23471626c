"""Checks the output of policies against its types, as far as possible before any asset matches."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.pointers import pointer
from lehr.generate.policies.mutation_rules import leaves_of
from lehr.generate.typing.conversion import Place
from lehr.generate.typing.problems import did_you_mean, quoted
from lehr.generate.typing.schema_pointers import astray
from lehr.model.addons import TURNDOWN
from lehr.model.asset import AssetId
from lehr.model.policy import Policy
from lehr.model.schema import Form, Schema
from lehr.model.types import Kind, Registry


def unfit(id: AssetId, policy: Policy, registry: Registry, place: Place) -> Iterator[Diagnostic]:
    """GEN005, GEN006, GEN007: types, addons and fields that a policy names and that do not exist; GEN044.

    A field is unknown if no type that the policy can match has it; types that are unknown here may be known
    elsewhere where the policy is used.

    Args:
        place: maps a JSON pointer into the policy's payload to its position.
    """
    problems = _Problems(id, registry, place)
    matched = [] if policy.match.select is None else policy.match.select.types
    for number, mutation in enumerate(policy.mutate):
        verb, values = mutation.values
        at = f"/mutate/{number}/{verb}"
        if matched and all(type in registry.types for type in matched):
            yield from problems.of_payload(values.payload, matched, f"{at}/payload")
        yield from problems.of_addons(values.addons, f"{at}/addons")
        if TURNDOWN in values.addons:
            yield problems.of_turndown(at + pointer(["addons", TURNDOWN]))
    for number, generation in enumerate(policy.generate):
        asset, at = generation.asset, f"/generate/{number}/asset"
        if asset.type in registry.types:
            yield from problems.of_payload(asset.payload, [asset.type], f"{at}/payload")
        else:
            yield problems.of_type(asset.type, f"{at}/type")
        yield from problems.of_addons(asset.addons, f"{at}/addons")


class _Problems:
    def __init__(self, policy: AssetId, registry: Registry, place: Place) -> None:
        self._policy = policy
        self._registry = registry
        self._place = place

    def of_type(self, type: str, at: str) -> Diagnostic:
        known = self._registry.types
        why = "the policy is to make assets of it; no expression can stand here"
        fix = did_you_mean(type, known, f"known types: {', '.join(sorted(known))}")
        return self._problem("GEN005", f"there is no asset type {quoted(type)}", why, fix, at)

    def of_turndown(self, at: str) -> Diagnostic:
        return self._problem(
            "GEN044",
            f"the policy `{self._policy}` would take whatever it matches out of production",
            f"{TURNDOWN} is asked for one asset after the other, and never by what happens to match",
            "write it on the assets that are meant",
            at,
        )

    def of_payload(self, values: Mapping[str, Any], types: Iterable[str], at: str) -> Iterator[Diagnostic]:
        kinds = {type: self._registry.types[type].payload for type in types}
        for path, _, inner in leaves_of(values, (), at):
            found = [astray(pointer(path), _schema_of(kind)) for kind in kinds.values()]
            if all(item is not None for item in found):
                _, fix = found[0] or ("", "")
                what = f"no {' or '.join(kinds)} has a field {quoted(pointer(path))}"
                yield self._problem("GEN007", what, "the policy is about no other type", fix, inner)

    def of_addons(self, values: Mapping[str, Any], at: str) -> Iterator[Diagnostic]:
        known = self._registry.addons
        for name, value in values.items():
            inner = at + pointer([name])
            if name not in known:
                fix = did_you_mean(name, known, f"known addons: {', '.join(sorted(known))}")
                what = f"there is no addon type {quoted(name)}"
                yield self._problem("GEN006", what, "an addon that nothing reads is a mistake", fix, inner)
            elif isinstance(value, dict):
                yield from self._of_addon(name, known[name], value, inner)

    def _of_addon(self, name: str, kind: Kind, value: Mapping[str, Any], at: str) -> Iterator[Diagnostic]:
        for path, _, inner in leaves_of(value, (), at):
            found = astray(pointer(path), _schema_of(kind))
            if found is not None:
                what = f"{name} has no field {quoted(pointer(path))}"
                yield self._problem("GEN007", what, "", found[1], inner)

    def _problem(self, code: str, what: str, why: str, fix: str, at: str) -> Diagnostic:
        return Diagnostic(code=code, what=what, why=why, fix=fix, subject=self._policy, at=self._place(at))


def _schema_of(kind: Kind) -> Any:
    if not isinstance(kind, Schema):
        return _struct_schema(kind)
    return {} if kind.form is Form.PROTOBUF else kind.document  # fields of messages have two names


@functools.lru_cache(maxsize=256)
def _struct_schema(kind: type[msgspec.Struct]) -> Any:
    try:
        return msgspec.json.schema(kind)
    except (TypeError, ValueError, NameError):  # a type that JSON schema cannot describe
        return {}
