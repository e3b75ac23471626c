"""The result of a plugin's comparison of intent with production."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import msgspec

from lehr.base.digest import Digest, digest, short
from lehr.model.asset import AssetId, AssetKey, Partition


class Goal(enum.StrEnum):
    """Intent's goal for an asset's production. Anything but PRESENT needs a turndown addon."""

    PRESENT = "present"
    DRAINED = "drained"
    FENCED = "fenced"
    ABSENT = "absent"


class Target(msgspec.Struct, frozen=True):
    """A plugin's input: which asset, of which incarnation, and the goal.

    Everything else a plugin reads through its `Reader`, which is bound to the same incarnation.

    Attributes:
        handle: the one that the plugin returned last for this asset; empty for none.
        lost: id of a push that may have made something whose handle was never returned; named until a diff
            has an answer, and empty for none.
        restart: id of a person's request to restart what runs; empty for none. Everything that this restart
            has not started differs. Only plugins with `Traits.restarts` get it.
    """

    partition: Partition
    id: AssetId
    type: str
    incarnation: int
    goal: Goal = Goal.PRESENT
    handle: str = ""
    lost: str = ""
    restart: str = ""

    @property
    def key(self) -> AssetKey:
        return AssetKey(self.partition, self.id)


class Change(msgspec.Struct, frozen=True):
    """One difference.

    Attributes:
        path: what differs, as a readable slash path (`mode`, `replicas/1/content`).
        intended, observed: short plain data; None for absent. Never a secret, never bulk.
    """

    path: str
    intended: Any
    observed: Any


def bounded(changes: Sequence[Change], path: str, most: int = 100) -> tuple[Change, ...]:
    """`changes`; of very many the first `most`, and one at `path` that represents exactly the rest."""
    rest = changes[most:]
    if not rest:
        return tuple(changes)
    return (*changes[:most], Change(path, f"{len(rest)} more changes", short(digest(rest))))


class Effects(msgspec.Struct, frozen=True):
    """The effects of carrying out a diff, as far as the plugin knows.

    Attributes:
        capacity: units of capacity gained or lost; None when the plugin cannot know.
        version_from, version_to: versions observed and intended, where the type has one.
        destructive: destroys what cannot be restored; needs approval.
        disruptive: interrupts service while it is carried out.
    """

    capacity: int | None = 0
    version_from: str | None = None
    version_to: str | None = None
    destructive: bool = False
    disruptive: bool = False


class Diff(msgspec.Struct, frozen=True):
    """Differences between intent and production. No changes means that nothing needs doing.

    Attributes:
        look_again: seconds after which to compare again, where production itself is fixing all of
            `changes`: nothing is pushed until then. None where a push has to.
        notes: facts about production besides the changes (a crash that was fixed),
            one line each, with stable wording while nothing new happens.
        handle: identifies what was found, for later calls (see `lehr.sdk.plugin`); unset to keep the last.
        outputs: values of production for other assets, by name, as `AssetPlugin.outputs` declares them,
            without those that are not known yet. They replace the last ones; unset to keep those.
    """

    changes: tuple[Change, ...] = ()
    effects: Effects = Effects()
    look_again: float | None = None
    notes: tuple[str, ...] = ()
    handle: str | msgspec.UnsetType = msgspec.UNSET
    outputs: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET

    @property
    def empty(self) -> bool:
        return not self.changes

    def digest(self) -> Digest:
        """Identifies exactly these changes and effects: an approval is bound to it."""
        return digest({"changes": self.changes, "effects": self.effects})

    def summary(self, most: int = 3) -> str:
        """One line: the first `most` paths and how many more."""
        paths = ", ".join(change.path for change in self.changes[:most])
        more = len(self.changes) - most
        return f"{paths} and {more} more" if more > 0 else paths


NO_DIFF = Diff()
