"""What a policy changes and makes in an example, and how that differs from what the example says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.generate.engine.schedule import generator_of, in_order
from lehr.generate.outcome.output import LeftOut
from lehr.generate.policies.mutations import Mutations
from lehr.generate.policies.policy_set import Effects, effects_of
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
from lehr.model.provenance import Derivation
from lehr.model.types import Registry
from lehr.query.compare import FieldChange, Kind, compare_asset

_MOST_FIELDS = 20
_LONGEST = 60

Locate = Callable[[Asset, str], Position | None]


class Given(NamedTuple):
    """An asset as an example declares it."""

    asset: Asset
    left_out: LeftOut

    def tell_left_out(self) -> LeftOut:
        """What nobody has written of it."""
        return self.left_out


class Outcome(NamedTuple):
    """What a policy has made of an example.

    Attributes:
        assets: those given, as they are then.
        made: those it made for them.
        effects: names of what changed or made something.
        problems: why the policy cannot do what it says.
    """

    assets: tuple[Asset, ...]
    made: tuple[Asset, ...]
    effects: tuple[str, ...]
    problems: tuple[Diagnostic, ...]


class Difference(msgspec.Struct, frozen=True):
    """An asset that does not come out as an example says.

    Attributes:
        part: of the example that says something about it: `becomes` or `generates`.
        pointer: to that, in the example.
        fields: what differs, each in words.
    """

    asset: str
    part: str
    pointer: str
    what: str
    fields: tuple[str, ...]


class PolicyEffects:
    """What one policy changes and makes, by itself. It must have no `problems_of` its own."""

    def __init__(self, policy: Asset, registry: Registry, locate: Locate) -> None:
        self._effects = _effects(policy, registry, locate)
        self._mutations = Mutations(self._effects.mutations, registry)
        self._registry = registry

    def on(self, given: Iterable[Given]) -> Outcome:
        """What comes of these assets."""
        changed = [self._mutations.applied(item.asset, item.tell_left_out) for item in given]
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
        return Outcome(assets, made, tuple(sorted(set(map(_name, makers)))), tuple(problems))


def problems_of(policy: Asset, registry: Registry, locate: Locate) -> Iterator[Diagnostic]:
    """All that is wrong with a policy, whatever it is about."""
    effects = _effects(policy, registry, locate)
    yield from effects.problems
    yield from in_order(map(generator_of, effects.deriving), registry)[1]


def compared(
    given: Iterable[Given], outcome: Outcome, becomes: Iterable[Given], generates: Iterable[Given]
) -> Iterator[Difference]:
    """How what has come of an example differs from what it says, asset by asset."""
    before = {item.asset.id: item.asset for item in given}
    after = {asset.id: asset for asset in outcome.assets}
    said = {item.asset.id: item.asset for item in becomes}
    places = {id: f"/becomes/{number}" for number, id in enumerate(said)}
    for id in said.keys() - before.keys():
        yield Difference(id, "becomes", places[id], "it is not among its `assets`", ())
    wanted = {id: said.get(id, asset) for id, asset in before.items()}
    yield from _differences("becomes", wanted, after, places)
    made = {asset.id: asset for asset in outcome.made}
    told = {item.asset.id: item.asset for item in generates}
    places = {id: f"/generates/{number}" for number, id in enumerate(told)}
    yield from _differences("generates", told, made, places)


def _differences(
    part: str, wanted: Mapping[AssetId, Asset], found: Mapping[AssetId, Asset], places: Mapping[AssetId, str]
) -> Iterator[Difference]:
    for id in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(id), found.get(id)
        pointer = places.get(id, "")
        if one is None:
            what = f"it is made, and `{part}` does not tell of it"
            yield Difference(id, part, pointer, what, _fields(AssetChange(id, None, other)))
        elif other is None:
            yield Difference(id, part, pointer, "it is not made", ())
        elif one.digest != other.digest:
            what = "it is otherwise" if pointer else f"it is changed, and `{part}` does not tell of it"
            yield Difference(id, part, pointer, what, _fields(AssetChange(id, one, other)))


def _fields(change: AssetChange) -> tuple[str, ...]:
    fields = compare_asset(change).fields
    told = [_told(item) for item in fields[:_MOST_FIELDS]]
    return (*told, f"and {len(fields) - len(told)} more") if len(fields) > len(told) else tuple(told)


def _told(item: FieldChange) -> str:
    if item.kind is Kind.ADDED:
        return f"`{item.path}` is {_shown(item.after)}"
    if item.kind is Kind.REMOVED:
        return f"`{item.path}` is missing, and should be {_shown(item.before)}"
    return f"`{item.path}` is {_shown(item.after)}, and should be {_shown(item.before)}"


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _name(by: Derivation) -> str:
    return by.generator.rpartition("/")[2]


def _effects(policy: Asset, registry: Registry, locate: Locate) -> Effects:
    nowhere = policy.origin or Position("")
    return effects_of(policy, registry, lambda pointer: locate(policy, f"/payload{pointer}") or nowhere)
