"""Validators: functions of a candidate and its predecessor that return diagnostics.

A validator declares its scope, so that validation costs O(changed): it is shown the changed
assets, and looks up the rest. It returns *all* problems it finds.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Annotated, Protocol

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.base.errors import LehrError
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import Acknowledgement, AssetChange
from lehr.model.types import Mention, Registry


class Scope(enum.StrEnum):
    """A validator's scope, and with it its cost.

    ASSET: one changed asset, before and after. NEIGHBOURHOOD: changed assets, and those that refer
    to them or claim what they claim. AGGREGATE: sums over the changed assets, next to the
    predecessor's. WHOLE_SET: every asset, changed or not; the slow path, O(all).
    """

    ASSET = "asset"
    NEIGHBOURHOOD = "neighbourhood"
    AGGREGATE = "aggregate"
    WHOLE_SET = "whole set"


Percent = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Reason = Annotated[str, msgspec.Meta(min_length=1)]


class Share(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setting for one type; None for all types."""

    percent: Percent | None = None
    floor: Count | None = None


class Guard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many assets one incarnation may touch in some way.

    Attributes:
        percent: share of the predecessor's assets.
        floor: number that is always allowed.
        types: exceptions, by asset type.
    """

    percent: Percent
    floor: Count
    types: dict[str, Share] = {}

    def of(self, type: str) -> tuple[float, int]:
        """Percent and floor for a type."""
        share = self.types.get(type, Share())
        percent = self.percent if share.percent is None else share.percent
        return percent, self.floor if share.floor is None else share.floor


class Shrink(Guard, frozen=True, forbid_unknown_fields=True):
    """Assets that are let go or turned down, in total and of each type."""

    percent: Annotated[float, msgspec.Meta(ge=0, le=100)] = 30.0
    floor: Count = 5


class Growth(Guard, frozen=True, forbid_unknown_fields=True):
    """Assets that are added, in total and of each type; and how much larger one may become.

    Attributes:
        asset_percent: share of its size by which one asset may grow.
        asset_floor: bytes by which it always may.
    """

    percent: Percent = 50.0
    floor: Count = 100
    asset_percent: Percent = 80.0
    asset_floor: Count = 10_000


class Blank(Guard, frozen=True, forbid_unknown_fields=True):
    """Assets of one type in which the same field, filled before, is empty; within it, a warning."""

    percent: Percent = 0.0
    floor: Count = 1


class Jump(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of changes that are probably mistakes.

    Attributes:
        factor: by which a number may grow or fall.
        severity: of a number that changes more.
        ignore: fields that may change as they like: JSON pointers, `*` for every key or index.
    """

    factor: Annotated[float, msgspec.Meta(gt=1)] = 10.0
    severity: Severity = Severity.ERROR
    ignore: tuple[str, ...] = ()


class NotSecret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that looks like a secret and is not one.

    Attributes:
        asset: id, or a pattern with `*`.
        field: JSON pointer into the asset's document, or a pattern with `*`.
    """

    asset: Reason
    field: Reason
    reason: Reason


class WhenDown(enum.StrEnum):
    """How a change is handled while a database or plugin that should judge it is unreachable.

    REFUSE: it is not published, and retried. WARN: it is published without this check.
    """

    REFUSE = "refuse"
    WARN = "warn"


class DatabaseRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values that a database has to know.

    Attributes:
        name: the rule's name in messages.
        connection: as in `lehr.DatabaseSchema`, without a password.
        query: one SELECT, whose first column holds every value that is allowed.
        type: assets of this type are judged, when they are new or changed.
        field: which of their values, by JSON pointer into the payload; `*` is every key or index.
    """

    name: Reason
    connection: Reason
    query: Reason
    type: Reason
    field: Annotated[str, msgspec.Meta(pattern="^/")]
    when_down: WhenDown = WhenDown.REFUSE


Answers = Mapping[DatabaseRule, frozenset[str] | LehrError]
"""The databases' answers: the values that they know, as text; or why one could not be asked."""

LookUp = Callable[[DatabaseRule], Awaitable[frozenset[str]]]
"""Asks a database. Raises `TransientError` or `StalledError` when it does not answer."""

ACKNOWLEDGEABLE = ("VAL021", "VAL022", "VAL023", "VAL024", "VAL025", "VAL060")
"""Errors that may be intended: an acknowledgement turns them into warnings."""

BEYOND_SOURCE = frozenset(
    {"VAL011", "VAL030", "VAL031", "VAL032", "VAL050", "VAL051", "VAL072", "VAL073", "VAL080"}
)
"""Errors that may depend on more than the source: on what is still being turned down, and on claims, paths,
databases or plugins of this host. So may those that validators of plugins have found: see `is_beyond_source`.
"""


def code_of(validator: str, code: str) -> str:
    """The code of a problem that a validator of a plugin has found: `naming/N001`."""
    return f"{validator}/{code}"


def is_beyond_source(code: str) -> bool:
    """Whether an error of this code may depend on more than the source.

    A revision that was refused with one of them is judged again at each pass, even if the source is the same.
    """
    return code in BEYOND_SOURCE or "/" in code


class Limits(msgspec.Struct, frozen=True):
    """The workspace's limits (`lehr.yaml`), for validators.

    Attributes:
        let_go: reasons, by id, of assets that may disappear from intent and stay in production.
        acknowledge: guards that are overridden, each for one incarnation's successor alone.
        not_secret: values that only look like secrets.
        databases: further rules that databases check.
    """

    let_go: dict[str, str] = {}
    shrink: Shrink = Shrink()
    growth: Growth = Growth()
    blank: Blank = Blank()
    jump: Jump = Jump()
    acknowledge: tuple[Acknowledgement, ...] = ()
    not_secret: tuple[NotSecret, ...] = ()
    databases: tuple[DatabaseRule, ...] = ()


class Proposal(Protocol):
    """A candidate next to its predecessor."""

    @property
    def partition(self) -> Partition: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def limits(self) -> Limits: ...

    def changes(self) -> Iterable[AssetChange]:
        """Every asset that was added, changed or removed."""
        ...

    def asset(self, id: AssetId) -> Asset | None:
        """An asset of the candidate; None when it has none of this id."""
        ...

    def type_of(self, id: AssetId) -> str | None:
        """Type of an asset of the candidate; None when it has none of this id."""
        ...

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        """References to `id` in the candidate."""
        ...

    def place(self, asset: Asset, pointer: str = "") -> Position | None:
        """Position of the value at `pointer` of the asset's document, as exactly as known."""
        ...

    def size_before(self) -> int:
        """Number of assets of the predecessor."""
        ...

    def prefetch(self, assets: Iterable[AssetId] = (), referrers: Iterable[AssetId] = ()) -> None:
        """Name assets, and assets whose references are wanted, that will be looked up.

        Only a validator in a process of its own needs it: it gets them in one step instead of one by one.
        """
        ...


class Validator(Protocol):
    """Finds problems. Pure."""

    def __call__(self, proposal: Proposal) -> Iterator[Diagnostic]: ...
