"""Members of a policy: the governed assets, and how each of them is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import AssetId


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A governed asset.

    Contents are compared by their keys (`lehr.model.content_key`).

    Attributes:
        unit: the unit that it belongs to.
        newest: its content in the newest incarnation.
        target: its content at the target of the rollout under way; None if it is not there, or none is.
        before: what it had before the rollout under way gave it other content; None if it has not.
        released: the content that it is released to; None if no release counts.
        released_at: the incarnation of that release; 0 for none.
        release: id of that release; empty for none.
        taken_back: whether that release takes newer content back.
        leaves: whether the target asks for its turndown.
        known: whether it was ever released, so that releases govern it already.
        applied: the content that production was given last; None for none.
        applied_at: the incarnation that this came from; 0 for none.
        applied_since: when it was applied last, in wall-clock seconds; None for never.
        good: whether it is in order with what was applied; None while that is not known.
        why: it is not good.
        adopted: whether production had the content already, so that no push was needed.
        busy: whether a push of it is, or may be, under way.
        waits: whether its push waits for a calendar, a freeze or an alert.
        awaits: other assets that its push waits for.
        held: the command or intent that keeps it from being pushed, such as a pin; empty for none.
        closed: the calendar or freeze that does so now; empty for none.
        closed_until: wall-clock seconds of when that ends; None if only a person ends it.
    """

    id: AssetId
    unit: str
    labels: dict[str, str] = {}
    newest: Digest
    target: Digest | None = None
    before: Digest | None = None
    released: Digest | None = None
    released_at: int = 0
    release: str = ""
    taken_back: bool = False
    leaves: bool = False
    known: bool = True
    applied: Digest | None = None
    applied_at: int = 0
    applied_since: float | None = None
    good: bool | None = None
    why: str = ""
    adopted: bool = False
    busy: bool = False
    waits: bool = False
    awaits: tuple[AssetId, ...] = ()
    held: str = ""
    closed: str = ""
    closed_until: float | None = None

    @property
    def wants_newest(self) -> bool:
        """Whether its newest content is not the one that it is released to."""
        return self.newest != self.released

    @property
    def wants_target(self) -> bool:
        """Whether the rollout under way brings it other content, and intent still asks for other content."""
        return self.target is not None and self.target != self.released and self.wants_newest

    @property
    def nowhere(self) -> bool:
        """Whether production has nothing of it, or half a turndown, and the rollout under way brings nothing.

        Intent has added it since the target, or the target asks for its turndown, which comes last.
        """
        nothing = self.applied is None and self.released is None
        return nothing and (self.target is None or self.leaves)

    @property
    def barred(self) -> str:
        """Why it cannot be pushed now; empty if it can."""
        return self.held or self.closed

    @property
    def reached(self) -> bool:
        """Whether production has what it is released to."""
        return self.applied is not None and self.applied == self.released

    @property
    def given_up(self) -> bool:
        """Whether it was released to content that never reached production, and that nothing goes back to.

        A rollback under way goes back to content that has been there: it is not given up.
        """
        return bool(self.release) and not self.reached and not self.taken_back

    @property
    def has(self) -> int:
        """The incarnation of the content that it has, or is going back to; 0 for none."""
        return self.released_at if self.reached or self.taken_back else self.applied_at


Units = dict[str, list[Member]]
"""Members by unit, in the order of their ids."""


def units_of(members: Iterable[Member]) -> Units:
    """Members by their unit."""
    found: Units = {}
    for member in members:
        found.setdefault(member.unit, []).append(member)
    return found


def common_labels(members: Sequence[Member]) -> dict[str, str]:
    """The labels that all members of a unit share."""
    shared = set(members[0].labels.items()).intersection(*(item.labels.items() for item in members[1:]))
    return dict(sorted(shared))
