"""The effects of a policy on an example, and how they differ from the expected ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.generate.engine.schedule import generator_of, in_order
from lehr.generate.outcome.output import UnsetFields
from lehr.generate.policies.mutations import Mutations
from lehr.generate.policies.policy_set import Effects, effects_of
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
from lehr.model.types import Registry
from lehr.query.compare import ChangeKind, FieldChange, compare_asset

_MOST_FIELDS = 20
_LONGEST = 60

Locate = Callable[[Asset, str], Position | None]


class Given(NamedTuple):
    """An asset as an example declares it."""

    asset: Asset
    unset_fields: UnsetFields

    def unset(self) -> UnsetFields:
        """Its fields that the example does not set."""
        return self.unset_fields


class Outcome(NamedTuple):
    """The result of a policy on an example.

    Attributes:
        assets: the given assets, with the policy's changes.
        made: the assets that the policy generated for them.
        effects: names of the mutations and generations that had an effect.
        problems: why the policy could not be applied.
    """

    assets: tuple[Asset, ...]
    made: tuple[Asset, ...]
    effects: tuple[str, ...]
    problems: tuple[Diagnostic, ...]


class Difference(msgspec.Struct, frozen=True):
    """An asset whose result is not the expected one.

    Attributes:
        part: field of the example that declares the expectation: `becomes` or `generates`.
        pointer: to the expected asset, in the example; empty if the example does not list it.
        fields: the differences, each in words.
    """

    asset: str
    part: str
    pointer: str
    what: str
    fields: tuple[str, ...]


class PolicyEffects:
    """The effects of one policy alone. Use it only if `problems_of` the policy is empty."""

    def __init__(self, policy: Asset, registry: Registry, locate: Locate) -> None:
        self._effects = _effects(policy, registry, locate)
        self._mutations = Mutations(self._effects.mutations, registry)
        self._registry = registry

    def on(self, given: Iterable[Given]) -> Outcome:
        """The result for these assets."""
        changed = [self._mutations.applied(item.asset, item.unset) for item in given]
        problems = [found for item in changed for found in item.problems]
        assets = tuple(item.asset for item in changed)
        outputs = [
            rule.output(asset, "", self._registry)
            for rule in self._effects.deriving
            for asset in assets
            if not problems and rule.matching.may_concern(asset)
        ]
        problems += [found for output in outputs for found in errors(output.diagnostics)]
        made = tuple(asset for output in outputs for asset in output.assets)
        makers = [item.by for asset in assets for item in asset.annotated_by]
        makers += [asset.made_by for asset in made if asset.made_by is not None]
        return Outcome(
            assets, made, tuple(sorted({by.generator.rpartition("/")[2] for by in makers})), tuple(problems)
        )


def problems_of(policy: Asset, registry: Registry, locate: Locate) -> Iterator[Diagnostic]:
    """All problems of a policy, regardless of the assets that it selects."""
    effects = _effects(policy, registry, locate)
    yield from effects.problems
    yield from in_order(map(generator_of, effects.deriving), registry)[1]


def compared(
    given: Iterable[Given], outcome: Outcome, becomes: Iterable[Given], generates: Iterable[Given]
) -> Iterator[Difference]:
    """How the outcome of an example differs from the expected one, asset by asset."""
    before = {item.asset.id: item.asset for item in given}
    after = {asset.id: asset for asset in outcome.assets}
    said = {item.asset.id: item.asset for item in becomes}
    places = {id: f"/becomes/{number}" for number, id in enumerate(said)}
    for id in said.keys() - before.keys():
        yield Difference(id, "becomes", places[id], "it is not listed in `assets` of the example", ())
    wanted = {id: said.get(id, asset) for id, asset in before.items()}
    yield from _differences("becomes", wanted, after, places)
    made = {asset.id: asset for asset in outcome.made}
    declared = {item.asset.id: item.asset for item in generates}
    places = {id: f"/generates/{number}" for number, id in enumerate(declared)}
    yield from _differences("generates", declared, made, places)


def _differences(
    part: str, wanted: Mapping[AssetId, Asset], found: Mapping[AssetId, Asset], places: Mapping[AssetId, str]
) -> Iterator[Difference]:
    for id in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(id), found.get(id)
        pointer = places.get(id, "")
        if one is None:
            what = f"it is generated, but `{part}` does not list it"
            yield Difference(id, part, pointer, what, _fields(AssetChange(id, None, other)))
        elif other is None:
            yield Difference(id, part, pointer, "it is not generated", ())
        elif one.digest != other.digest:
            what = "its fields differ" if pointer else f"it is changed, but `{part}` does not list it"
            yield Difference(id, part, pointer, what, _fields(AssetChange(id, one, other)))


def _fields(change: AssetChange) -> tuple[str, ...]:
    fields = compare_asset(change).fields
    declared = [_change_text(item) for item in fields[:_MOST_FIELDS]]
    return (
        (*declared, f"and {len(fields) - len(declared)} more")
        if len(fields) > len(declared)
        else tuple(declared)
    )


def _change_text(item: FieldChange) -> str:
    if item.kind is ChangeKind.ADDED:
        return f"`{item.path}` is {_shown(item.after)}"
    if item.kind is ChangeKind.REMOVED:
        return f"`{item.path}` is missing, but should be {_shown(item.before)}"
    return f"`{item.path}` is {_shown(item.after)}, but should be {_shown(item.before)}"


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _effects(policy: Asset, registry: Registry, locate: Locate) -> Effects:
    nowhere = policy.origin or Position("")
    return effects_of(policy, registry, lambda pointer: locate(policy, f"/payload{pointer}") or nowhere)
