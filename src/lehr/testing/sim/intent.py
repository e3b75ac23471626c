"""Intent that changes at random, and stays valid: only what a person may publish."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.model.addons import DEPENDS_ON, LABELS, TURNDOWN, DependsOn, Labels, Turndown, VersionNeed
from lehr.model.asset import Asset
from lehr.model.types import Registry, addon_names
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.governing_assets import Governing
from lehr.testing.sim.selectors import TEAMS, TIERS
from lehr.testing.world import PARTITION, thing

IDS = tuple(f"t{number}" for number in range(8))

_PENDING = 3
"""Revisions that may have been written and not be published yet."""

UNGUARDED = {"percent": 100, "floor": 1000}
GUARDED = {"percent": 30, "floor": 1}
"""How much one change may take away."""


class Spec(msgspec.Struct):
    """A thing as a person writes it.

    Attributes:
        needs: the lowest versions of others that it can run with.
        versioned: its value is its version.
    """

    value: int
    depends_on: list[str] = []
    sends_to: list[str] = []
    reads: list[str] = []
    needs: dict[str, int] = {}
    turndown: Turndown | None = None
    destroys: bool = False
    versioned: bool = False
    team: str = ""
    tier: str = ""

    def __str__(self) -> str:
        named = (("after", self.depends_on), ("sends load to", self.sends_to), ("reads", self.reads))
        of = (("of team", self.team), ("of tier", self.tier))
        facts = (
            ("versioned", self.versioned),
            ("destroys", self.destroys),
            ("turned down", self.turndown is not None),
        )
        parts = [f"{how} {' '.join(ids)}" for how, ids in named if ids]
        parts += [f"needs {id} at least {version}" for id, version in self.needs.items()]
        parts += [f"{what} {name}" for what, name in of if name]
        parts += [word for word, is_so in facts if is_so]
        return ", ".join([str(self.value), *parts])

    def names(self) -> set[str]:
        return {*self.depends_on, *self.sends_to, *self.reads, *self.needs}

    def keep(self, ids: Collection[str]) -> None:
        """Keep the references to these things alone."""
        self.depends_on = [id for id in self.depends_on if id in ids]
        self.sends_to = [id for id in self.sends_to if id in ids]
        self.reads = [id for id in self.reads if id in ids]
        self.needs = {id: version for id, version in self.needs.items() if id in ids}

    def copied(self) -> Spec:
        """The same, to be changed independently."""
        return replace(
            self,
            depends_on=list(self.depends_on),
            sends_to=list(self.sends_to),
            reads=list(self.reads),
            needs=dict(self.needs),
        )


class _Past(msgspec.Struct, frozen=True):
    """How everything was declared once."""

    things: dict[str, Spec]
    governing: dict[str, Asset]
    let_go: set[str]
    moved: set[str]

    def copied(self) -> _Past:
        """The same, to be changed independently."""
        things = {id: spec.copied() for id, spec in self.things.items()}
        return _Past(things, dict(self.governing), set(self.let_go), set(self.moved))


class Intent:
    """The lines in the source of truth: never without any thing.

    Attributes:
        guard: how much one change may take away.
        acknowledged: the incarnation after which that does not count; None for none.
    """

    def __init__(self, dice: Dice, registry: Registry, published: Callable[[str], Asset | None]) -> None:
        """Intent made up by the dice; `published` returns an asset as the newest incarnation has it."""
        self._published = published
        self._dice = dice
        self._by_capacity = dice.happens(0.4)
        self._value = 0
        self._past: list[_Past] = []
        self._moved: set[str] = set()
        self.guard = UNGUARDED
        self.acknowledged: int | None = None
        self.let_go: set[str] = set()
        self.things: dict[str, Spec] = {}
        self.governing = Governing(dice, registry, IDS)
        for id in IDS[: dice.number(2, len(IDS))]:
            self.declare(id)
            if dice.happens(0.5):
                self._link(id)
        for _ in range(dice.number(0, 3)):
            self.governing.change()

    def assets(self) -> list[Asset]:
        return [*(_asset(id, spec) for id, spec in self.things.items()), *self.governing.assets.values()]

    def path(self, id: str) -> str:
        """The file that declares an asset."""
        return f"assets/moved/{id}.json" if id in self._moved else f"assets/{id}.json"

    def files(self) -> dict[str, bytes]:
        """The files of the source: a workspace, and a file for each asset."""
        workspace: dict[str, Any] = {"partition": PARTITION}
        workspace["let_go"] = dict.fromkeys(sorted(self.let_go), "not ours")
        workspace |= {"shrink": self.guard, "blank": UNGUARDED}
        if self.acknowledged is not None:
            meant = {"code": "VAL021", "subject": "test*", "reason": "it is meant"}
            workspace["acknowledge"] = [meant | {"after": f"{PARTITION}@{self.acknowledged}"}]
        return {"lehr.yaml": encode(workspace)} | {
            self.path(asset.id): encode(asset.document()) for asset in self.assets()
        }

    def references(self) -> list[tuple[str, str]]:
        """Each thing with each that it names."""
        return [(id, named) for id, spec in self.things.items() for named in sorted(spec.names())]

    def kept(self) -> list[str]:
        """Things that may not just disappear."""
        return [id for id, spec in self.things.items() if spec.turndown is None]

    def change(self) -> None:
        """Make one to three changes."""
        govern = self.governing.change
        kinds = [self._edit, self._edit, self._relink, self._turn_down, self._delete, self._add]
        kinds += [govern, govern, self._turn_down, self._retire, self._rename, self._revert]
        if self.guard is not UNGUARDED:
            kinds += [self.turn_down_many] * 3
        for _ in range(self._dice.number(1, 3)):
            self._dice.pick(kinds)()

    def renew(self, *ids: str) -> None:
        """Give the things `ids` other values; sometimes all get the same one, and so the same difference."""
        same = self._next() if self._dice.happens(0.2) else None
        for id in ids:
            self.things[id].value = self._next() if same is None else same

    def remember(self) -> None:
        """The present declarations can be returned to."""
        past = _Past(self.things, self.governing.assets, self.let_go, self._moved)
        self._past.append(past.copied())

    def take_back(self) -> None:
        """Things have the values that they had before the last edit."""
        for id, spec in self._past[-2].things.items() if len(self._past) > 1 else ():
            if id in self.things:
                self.things[id].value = spec.value

    def retire(self) -> str | None:
        """Turn down a thing that nothing names; which one, or None for none."""
        free = [
            id
            for id, spec in self.things.items()
            if not self._named(id) and not self._comes_back(id) and spec.turndown is None
        ]
        if len(self.things) < 2 or not free:
            return None
        id = self._dice.pick(free)
        self.things[id].turndown = Turndown(
            "for good", self._dice.pick((0.0, 10.0)), self._dice.pick((0.0, 40.0, 120.0))
        )
        return id

    def remove(self, id: str) -> bool:
        """Take the lines of a thing out, if that may be."""
        spec = self.things.get(id)
        if spec is None or spec.turndown is None or self._named(id) or not self._may_go(id):
            return False
        if len(self.things) > 1:
            del self.things[id]
        return id not in self.things

    def come_back(self) -> str | None:
        """Declare a removed thing again, with the references still possible; returns its id."""
        gone = {id: past.things[id] for past in self._past for id in past.things if id not in self.things}
        if not gone:
            return None
        id = self._dice.pick(sorted(gone))
        spec = gone[id].copied()
        spec.keep(self._ahead_of(id))
        spec.turndown = spec.turndown if self._dice.happens(0.5) else None
        self.things[id] = spec
        self.let_go.discard(id)
        return id

    def lean_on(self, id: str) -> str | None:
        """Let a thing that stays read one before it, which then is turned down; which one."""
        others = self._ahead_of(id)
        if not others or self.things[id].turndown is not None:
            return None
        other = self._dice.pick(others)
        self.things[id].reads = [other]
        return other

    def turn_down(self, id: str) -> None:
        """Ask for a turndown immediately, whatever names the thing."""
        if not self._comes_back(id):
            self.things[id].turndown = Turndown("at once", 0.0, 0.0)

    def row(self, number: int, *, reading: bool = False) -> list[str]:
        """Let some things refer each to the one before it, and nothing else to any of them.

        Args:
            reading: each reads the one before it; else it is pushed after that one.

        Returns:
            Their ids, the one that all others need first; empty where too few things stay.
        """
        free = [id for id in IDS if self._stays(id)]
        while len(free) > number:
            free.remove(self._dice.pick(free))
        if len(free) < number:
            return []
        for id in free:
            if id not in self.things:
                self.declare(id)
            self.things[id].destroys = False
        for spec in self.things.values():
            spec.keep([id for id in self.things if id not in free])
        for id in free:
            self.things[id].keep(())
        for ahead, id in itertools.pairwise(free):
            (self.things[id].reads if reading else self._order(self.things[id])).append(ahead)
        return free

    def newcomer(self, after: str) -> str | None:
        """A thing that could be declared and may refer to `after`; None for none."""
        absent = [id for id in IDS if id > after and id not in self.things and not self._comes_back(id)]
        return self._dice.pick(absent) if absent else None

    def _stays(self, id: str) -> bool:
        """Whether a thing is declared to stay, or could be."""
        spec = self.things.get(id)
        return not self._comes_back(id) and (spec is None or spec.turndown is None)

    def _order(self, spec: Spec) -> list[str]:
        """The references by which things are ordered."""
        return spec.sends_to if self._by_capacity else spec.depends_on

    def turn_down_many(self) -> None:
        """More than one change may take away, where a guard limits that."""
        for id in list(self.things):
            if self._dice.happens(0.6) and not self._comes_back(id):
                self.things[id].turndown = self.things[id].turndown or Turndown("all of them", 10.0, 10.0)

    def was_turned_down(self, id: str) -> bool:
        """Whether a thing was ever declared with a turndown, published or not."""
        return any(id in past.things and past.things[id].turndown is not None for past in self._past)

    def calm(self) -> None:
        """Take away what would hold assets for ever, or for long."""
        self.governing.calm()
        self.guard, self.acknowledged = UNGUARDED, None

    def _revert(self) -> None:
        """Everything is declared as it once was; later things are let go."""
        past = self._dice.pick(self._past).copied()
        since = [id for id in self.things if id not in past.things]
        if not all(self._may_go(id) for id in since):
            return
        gone = {id for id in since if self.things[id].turndown is None}
        self.let_go = (past.let_go | self.let_go | gone) - set(past.things)
        self.things, self.governing.assets, self._moved = past.things, past.governing, past.moved

    def _rename(self) -> None:
        """The file of an asset moves to another folder."""
        self._moved ^= {self._dice.pick([asset.id for asset in self.assets()])}

    def declare(self, id: str) -> None:
        """Declare a thing that refers to nothing."""
        team, tier = self._dice.pick(("", *TEAMS)), self._dice.pick(TIERS)
        self.things[id] = Spec(self._next(), destroys=self._dice.happens(0.15), team=team, tier=tier)
        self.let_go.discard(id)

    def _next(self) -> int:
        """Another value than the last; it may be more or less."""
        self._value = (self._value + self._dice.number(1, 98)) % 99
        return self._value

    def _edit(self) -> None:
        spec = self.things[self._some()]
        spec.value = self._next()
        if self._dice.happens(0.2):
            spec.team, spec.tier = self._dice.pick(("", *TEAMS)), self._dice.pick(TIERS)

    def _relink(self) -> None:
        self._link(self._some())

    def _link(self, id: str) -> None:
        """References, only to earlier things, and to none in turndown.

        In a cycle none could be taken out first. A thing in turndown would be brought back for the
        reference, but is not notified of it.
        """
        others, spec = self._ahead_of(id), self.things[id]
        ahead = [other for other in others if self._dice.happens(0.3)]
        # Static order and order by capacity, mixed, could require the impossible.
        spec.depends_on, spec.sends_to = ([], ahead) if self._by_capacity else (ahead, [])
        spec.reads = [other for other in others if self._dice.happens(0.2)]

    def _turn_down(self) -> None:
        id = self._some()
        spec = self.things[id]
        if spec.turndown is None and self._comes_back(id):
            return
        if spec.turndown is None:
            stand, fence = (self._dice.pick((0.0, 10.0, 40.0)) for _ in range(2))
            spec.turndown = Turndown("old", stand, fence)
        elif all(self.things[id].turndown is None for id in spec.names()):
            spec.turndown = None

    def _retire(self) -> None:
        """Turn down a thing with all its references; or take out its lines while it is fenced."""
        naming = [id for id, spec in self.things.items() if spec.names()]
        if not naming:
            return
        id = self._dice.pick(naming)
        spec = self.things[id]
        if spec.turndown is not None:
            if self._may_go(id) and len(self.things) > 1 and not self._named(id):
                del self.things[id]
            return
        if any(self._comes_back(other) for other in (id, *spec.names())):
            return
        spec.turndown = Turndown("retired", 0.0, 40.0)
        for other in sorted(spec.names()):
            self.things[other].turndown = self.things[other].turndown or Turndown("retired", 0.0, 0.0)

    def _ahead_of(self, id: str) -> list[str]:
        """Things that it may refer to."""
        return [other for other, spec in self.things.items() if other < id and spec.turndown is None]

    def _comes_back(self, id: str) -> bool:
        """Whether it should be brought back, unpublished: it may be gone, and be named again."""
        published = self._published(id)
        return published is not None and TURNDOWN in addon_names(published)

    def _named(self, id: str) -> bool:
        return any(id in spec.names() for spec in self.things.values())

    def _delete(self) -> None:
        """Take lines out, with the references to them; things without a turndown are let go."""
        id = self._some()
        if self.things[id].turndown is None and not self._dice.happens(0.3):
            return
        if len(self.things) == 1 or not self._may_go(id):
            return
        if self.things[id].turndown is None:
            self.let_go.add(id)
        del self.things[id]
        for spec in self.things.values():
            spec.keep(self.things)

    def _may_go(self, id: str) -> bool:
        """Whether its lines may go: not before its turndown has been published."""
        published = self._published(id)
        turned_down = published is None or TURNDOWN in addon_names(published)
        # The last write may still be published before the next one.
        pending = [past.things[id] for past in self._past[-_PENDING:] if id in past.things]
        turned_down = turned_down and all(spec.turndown is not None for spec in pending)
        return turned_down or self.things[id].turndown is None

    def _add(self) -> None:
        absent = [id for id in IDS if id not in self.things]
        if absent:
            self.declare(self._dice.pick(absent))

    def _some(self) -> str:
        return self._dice.pick(list(self.things))


def _asset(id: str, spec: Spec) -> Asset:
    addons: dict[str, Any] = {}
    if spec.depends_on or spec.sends_to or spec.needs:
        versions = [VersionNeed(id, str(version)) for id, version in spec.needs.items()]
        addons[DEPENDS_ON] = DependsOn(list(spec.depends_on), list(spec.sends_to), versions)
    if spec.turndown is not None:
        addons[TURNDOWN] = spec.turndown
    if labels := {key: value for key, value in (("team", spec.team), ("tier", spec.tier)) if value}:
        addons[LABELS] = Labels(labels)
    return thing(
        id,
        str(spec.value),
        addons,
        reads=list(spec.reads),
        destroys=spec.destroys,
        versioned=spec.versioned,
    )


def encode(document: object) -> bytes:
    """A document as a file that people could have written."""
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=2)
