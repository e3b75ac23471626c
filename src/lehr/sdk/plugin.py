"""Asset plugins: everything that Lehr knows about the production of one asset type.

The contract, for authors:

* A plugin does nothing unless it is called, and keeps no state that matters: production is
  the state. Memory of earlier calls may only be a hint (`watch`).
* `diff` reads and never writes. Called twice with nothing changed, it returns the same twice.
* `push` is idempotent, and after it ended DONE the next `diff` is empty.
* Both read intent through the `Reader` alone. Everything they read becomes part of the content
  digest, and wakes the asset when it changes. A reader may raise `NeedError`, which they let pass: `diff` is
  then repeated. `push` is not, so it reads what `diff` has read or the payload refers to.
* Exceptions: `TransientError` (try again with backoff; `FencedError` for a push that a newer control plane
  has overtaken, and that has changed nothing), `StalledError` (needs an operator or new intent),
  `WaitingError` (not before a time). Out of `diff`, any other exception counts as
  transient; out of `push`, any other exception, a timeout and a cancellation count as
  *unknown*: nothing is touched again before `status` and `diff` have looked.
* No secret in a diff, a message or a log.
* Where an asset's id does not identify its production, as production makes ids of its own, a plugin returns
  a *handle* with an outcome or a diff, and is given it with each later target. It holds no secret, and at
  most 8 KiB; losing it must be survivable. A process that ends during a push may lose the handle of what
  the push has made. So a plugin attaches the operation's id to what it makes, looks for it when a target
  names a `lost` operation, and if that is impossible raises `StalledError` that asks for `import:` in intent.
* What production makes and other assets need (an identifier, an address) a plugin declares in `outputs`,
  and returns with each diff. It reads those of other assets with `Reader.output`, which raises
  `WaitingError` while a value is not known: let that pass. A push reads what its diff has read, unchanged.
* `texts`, where there is one, returns the texts in production that a push would change, as they are and as
  they will be, for a person who reads a plan. It never writes, and shows no secret. Nothing stores them.
* `discover`, where there is one, drafts assets of what already exists. A draft without an obstacle
  has an empty diff, so that adopting it changes nothing.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import msgspec

from lehr.base.errors import LehrError, StalledError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.diff import Diff, Goal, Target
from lehr.model.evolution import FIRST
from lehr.model.operation import Operation, Outcome, Progress
from lehr.model.outputs import OutputNames

if TYPE_CHECKING:
    from lehr.sdk.provider import ConfiguredProvider

T = TypeVar("T")

IndexedDiff = tuple[int, Diff | LehrError]
"""Index of a request, and its diff or the error that it ends with."""


class Reader(Protocol):
    """Reads intent for one asset, and records what was read.

    The asset itself is that of one incarnation. Another asset is read at the content that its own pin and
    release allow: as production has it, or is about to.
    """

    @property
    def incarnation(self) -> int:
        """Sequence of the incarnation of the asset that is compared or pushed."""
        ...

    def asset(self, id: AssetId) -> Asset | None:
        """The asset, or None if there is none with this id (that is also recorded).

        None also after its turndown has removed it. A reader notices that only if it names the asset in
        a field that `follows`; any other reference prevents the removal.
        """
        ...

    def payload(self, id: AssetId, kind: type[T]) -> T:
        """The asset's payload, in the version that the plugin understands (`AssetPlugin.versions`).

        Raises:
            StalledError: there is no such asset, or it is of another type, or of a version that
                cannot become one that the plugin understands.
        """
        ...

    def addon(self, id: AssetId, name: str, kind: type[T]) -> T | None:
        """The asset's addon, or None."""
        ...

    def output(self, id: AssetId, path: str) -> Any:
        """An output of the asset, as its plugin observed it last: plain data.

        Nothing else of that asset counts as read. A stable output is part of what was read, and a change of
        it wakes the reading asset; see `lehr.model.outputs.OutputNames`.

        Args:
            path: the output's name, and what leads to a value within it (`endpoint/port`, `zones/0`).

        Raises:
            WaitingError: it is not known yet. The reading asset is woken when it is.
            StalledError: there is no such asset, or its type has no such output.
        """
        ...


def version_read(understands: Mapping[str, int], type: str, kind: type[Any]) -> int | None:
    """Up to which version a payload is given to a reader that understands these; None for the newest.

    Args:
        understands: as `AssetPlugin.versions`.
        kind: the type it is read as.
    """
    return understands.get(type, FIRST if kind is dict else None)


class Push(Protocol):
    """A push under way, as its plugin sees it."""

    @property
    def operation(self) -> Operation:
        """Its record; `operation.id` identifies it for `status` and in providers' logs."""
        ...

    @property
    def superseded(self) -> bool:
        """True once newer content has overtaken this push: stop early if that is safe.

        A push that stops early returns `Outcome(Result.FAILED, "superseded")`.
        """
        ...

    def progress(self, message: str) -> None:
        """Report progress in one line, for users who watch the push."""
        ...


class Fencing(enum.Enum):
    """How a provider keeps a late writer out.

    NATIVE: the provider refuses an older epoch, and an operation that `status` has called ended: a
    control plane that was stopped may come back and begin it. COMPARE_AND_SWAP: the provider refuses a write
    that rests on an older state. With either, a process that takes over does not wait for an operation of
    its predecessor that is still changing an asset that was there before. NONE: nothing refuses a late
    write, so a take-over waits until `status` proves that the operation under way has ended.
    """

    NATIVE = "native"
    COMPARE_AND_SWAP = "compare-and-swap"
    NONE = "none"


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """The Enforcer's handling of a plugin.

    Attributes:
        goals: goals that `diff` and `push` understand beyond PRESENT. A turndown passes
            through those of DRAINED and FENCED that are here; without ABSENT the type
            cannot be turned down.
        turns, pushes: how many diffs and how many pushes may run at once.
        diff_timeout, push_timeout: seconds after which a call is given up; a push that is
            given up is unknown.
        resync: seconds between two turns of an asset when nothing has woken it.
        restarts: whether it can restart what runs on request (`Target.restart`).
        providers: whether it applies the configuration of an asset's `lehr.Provider`
            (`lehr.sdk.provider`). Without it, Lehr never gives it an asset that has one.
    """

    fencing: Fencing = Fencing.NONE
    goals: frozenset[Goal] = frozenset()
    turns: int = 16
    pushes: int = 8
    diff_timeout: float = 30.0
    push_timeout: float = 600.0
    resync: float = 60.0
    restarts: bool = False
    providers: bool = False


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Something in production that intent could express, as `discover` drafts it.

    Attributes:
        id: a possible id for its asset.
        payload: plain data, as a user would write it, without defaults.
        notes: what exists and is not in the payload, or worth knowing; one line each.
        obstacle: why an asset with this payload would change production, or cannot exist. Without an
            obstacle, its diff is empty.
    """

    id: str
    type: str
    payload: dict[str, Any]
    notes: tuple[str, ...] = ()
    obstacle: str = ""


MOST_TEXT = 1 << 20
"""Bytes of a text that a plan shows. A longer one is hidden."""


class TextChange(msgspec.Struct, frozen=True):
    """A text in production that a push would change, for a person who reads a plan. It is never stored.

    Attributes:
        path: of the change in the diff that this text shows in full.
        observed, intended: the text now and after the push; None for absent.
        hidden: why the text is not shown (`it is not UTF-8 text`), and empty if it is.
    """

    path: str
    observed: str | None = None
    intended: str | None = None
    hidden: str = ""


class AssetPlugin(ABC):
    """Base class of asset plugins. `diff` and `push` must be written, the rest may be."""

    types: ClassVar[tuple[str, ...]]
    traits: ClassVar[Traits] = Traits()
    versions: ClassVar[Mapping[str, int]] = {}
    """Up to which version it understands types that it reads, also of other assets.

    A payload of an earlier version is converted to that; while the type itself is still of an
    earlier one, to its own. One of a later version stalls the asset that reads it. For payloads
    that are read as `dict`, a type that is not here is understood in version 1; one that is read as
    a class has the version of the class.
    """

    outputs: ClassVar[Mapping[str, OutputNames]] = {}
    """By type, the outputs that its diffs may have; any others are refused."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @abstractmethod
    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare intent with production. Read-only, repeatable."""

    async def diff_many(self, requests: Sequence[tuple[Target, Reader]]) -> AsyncIterator[IndexedDiff]:
        """Compare many assets in one call, for plugins to which that is cheaper: at most 256.

        Yields, in any order, the index of a request and what its `diff` answers or raises. Requests
        left without an answer when it ends, fails, or is silent for `diff_timeout` are compared
        one by one, so it may leave out those that need more than a look.
        """
        for index, (target, read) in enumerate(requests):
            yield index, await self.diff(target, read)

    @abstractmethod
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Move production to the intent, or for another goal than PRESENT, to that goal."""

    async def texts(self, target: Target, read: Reader) -> Sequence[TextChange]:
        """The texts that a push would change, for a plan; none by default. Read-only, repeatable.

        Called only by a plan that shows texts, after `diff` has found a difference, for one asset after the
        other. Lehr hides a text that looks like a secret or is longer than `MOST_TEXT`. The plugin hides one
        that may be a secret for a reason that it alone knows. It reads what `diff` has read.
        """
        return ()

    async def status(self, operation: Operation) -> Progress:
        """Whether a push whose outcome is unknown may still be changing production.

        The default is right only for plugins whose push changes nothing after its coroutine
        has ended or its process has died.
        """
        return Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        """Keys of assets whose production may have changed. Hints: some may be missing, repeated or wrong.

        The default never reports anything. Any other one that ends or fails is begun again after
        some seconds.
        """
        nothing: tuple[AssetKey, ...] = ()
        for key in nothing:
            yield key

    def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """Drafts of assets for what production already holds, for new users of Lehr. Read-only.

        May be an `async def` that yields. Payloads may hold secrets of production: a caller that writes
        them down looks for these first.

        Args:
            query: where to look, in the type's own terms (paths, a database); never empty.
            partition: the partition of the assets.

        Raises:
            StalledError: the plugin cannot discover, as by default; or does not understand `query`.
            TransientError: production cannot be read now.
        """
        raise StalledError(
            f"assets of type {', '.join(self.types)} cannot be discovered",
            code="SDK102",
            why="their plugin cannot list what exists",
            fix="write them by hand; see `lehr explain TYPE`",
        )

    def discover_in(
        self, provider: ConfiguredProvider, query: Sequence[str], partition: Partition
    ) -> AsyncIterator[Found]:
        """As `discover`, with the configuration of a provider. By default, the plugin cannot."""
        raise StalledError(
            f"assets of type {', '.join(self.types)} cannot be discovered with a provider",
            code="SDK112",
            why="their plugin cannot list what exists with another configuration than its own",
            fix="leave out the provider, or write them by hand",
        )

    async def close(self) -> None:
        """Release what the plugin itself holds; production continues."""
