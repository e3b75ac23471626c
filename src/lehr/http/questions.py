"""The parts of a resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Meta

from lehr.base.clock import Clock
from lehr.http.kept import Kept
from lehr.http.limits import FILTER_LENGTH, Limits
from lehr.http.problems import meaning
from lehr.model.asset import Partition
from lehr.model.types import Registry
from lehr.query.asset_pages import Sieve
from lehr.query.joined import History
from lehr.query.partition_view import Inert, Reading, choose_partition
from lehr.query.run_state import RunState
from lehr.sdk.calendars import Calendars, no_calendars
from lehr.sdk.store import Store

if TYPE_CHECKING:
    from lehr.dry_run.dry_turns import DryTurns

PartitionName = Annotated[str, Meta(description="Name of the partition.", max_length=63)]
Id = Annotated[str, Meta(description="Id of the asset. Slashes do not need escaping.", max_length=200)]
At = Annotated[
    str,
    Meta(description="Incarnation: a number, latest, previous, or a time in ISO 8601.", max_length=80),
]
FilterText = Annotated[
    str, Meta(description="CEL condition over id, type, payload and addons.", max_length=FILTER_LENGTH)
]
Types = Annotated[str, Meta(description="Types, separated by commas.", max_length=2000)]
SelectorText = Annotated[
    str,
    Meta(description="Also restrict to this selector: an id, a pattern, type=T, label:K=V.", max_length=2000),
]
Limit = Annotated[int, Meta(ge=1, le=100_000)]
PageLimit = Annotated[int, Meta(description="Most items of a page.", ge=1, le=1000)]
CursorText = Annotated[str, Meta(description="Cursor returned by the previous page.", max_length=2000)]
Fields = Annotated[
    str, Meta(description="Fields to send, separated by commas: payload.replicas,addons.", max_length=2000)
]


RunStates = Callable[[], RunState]
"""The current state of the `lehr run` of the served state. Called in a thread."""


class DryRuns(Protocol):
    """Dry turns of assets whose production this machine has."""

    def require(self, partition: Partition) -> None:
        """Check that production of a partition can be compared here.

        Raises:
            LehrError: it cannot.
        """
        ...

    def opened(self, reading: Reading) -> AbstractAsyncContextManager[DryTurns]:
        """Dry turns of a partition, with plugins that are closed at the end."""
        ...


class Installation(NamedTuple):
    """Facts that the server's installation knows and its store does not.

    Attributes:
        inert: of a partition, the assets that have no production.
        types: of an incarnation, by its sequence: those that it declares, and those installed.
        history: what incarnations were made from.
        calendars: reads when pushes may not start.
        dry_runs: compares production; None where there is none.
    """

    inert: Callable[[Store, Partition], Inert]
    types: Callable[[Store, Partition, int], Registry]
    history: History
    calendars: Calendars = no_calendars
    dry_runs: DryRuns | None = None


class Question(NamedTuple):
    """The context of a question, besides its parameters."""

    store: Store
    clock: Clock
    limits: Limits
    installation: Installation
    kept: Kept
    sieve: Sieve | None = None
    run_state: RunStates | None = None

    def progress(self) -> Mapping[str, str]:
        """The last progress that each push under way reported, by the id of its operation."""
        return {} if self.run_state is None else self.run_state().progress

    def reading(self, partition: str) -> Reading:
        """The partition.

        Raises:
            ProblemError: no partition has this name.
        """
        with meaning("NotFound", "see /v1/partitions"):
            chosen = choose_partition(self.store.intent.partitions(), partition)
        return Reading(self.store, chosen, self.clock.now(), self.installation.inert(self.store, chosen))


class Representation(NamedTuple):
    """The answer of a resource.

    Attributes:
        make: makes the content: a value, or encoded JSON.
        tag: stays the same as long as the content does; "" if unknown.
    """

    make: Callable[[], Any]
    tag: str = ""


class Resource(NamedTuple):
    """A resource.

    Attributes:
        path: below the server's address, with names of parameters in braces.
        name: unique.
        parameters: a struct, those of the path included.
        answers: type of the content, for the description.
        whole: it covers everything, unless one asset is named.
        apart: it is answered immediately, whatever else is waiting.
        dry: it is a dry turn, which makes plugins work: only for those who have the token.
    """

    path: str
    name: str
    summary: str
    parameters: type[msgspec.Struct]
    answers: Any
    answer: Callable[[Question, Any], Representation]
    whole: bool = False
    apart: bool = False
    dry: bool = False


class NoParameters(msgspec.Struct, frozen=True):
    """No parameters."""


class OfPartition(msgspec.Struct, frozen=True):
    """Of a partition as a whole."""

    partition: PartitionName


class OfLatest(OfPartition, frozen=True):
    """The newest of them."""

    limit: Limit = 100
    before: Annotated[
        int,
        Meta(description="Only those before the incarnation with this number; 0 for all.", ge=0, le=2**53),
    ] = 0


class OfComparison(OfPartition, frozen=True):
    """Between which incarnations."""

    before: At = msgspec.field(name="from", default="previous")
    after: At = msgspec.field(name="to", default="latest")


Parameters = TypeVar("Parameters", bound=msgspec.Struct)
InPartition = TypeVar("InPartition", bound=OfPartition)
PARTITION_PATH = "/v1/partitions/{partition}"


class Catalogue(list[Resource]):
    """Resources in the order in which they are described; its methods decorate what answers them."""

    def answered_by(
        self,
        path: str,
        summary: str,
        parameters: type[Parameters],
        answers: Any,
        *,
        name: str = "",
        whole: bool = False,
        apart: bool = False,
        dry: bool = False,
    ) -> Callable[[Callable[[Question, Parameters], Representation]], None]:
        """A resource whose answer may have a tag.

        Args:
            path: below that of a partition, unless it begins with a slash.
            name: by default the last part of the path.
        """
        full = path if path.startswith("/") else f"{PARTITION_PATH}/{path}"
        title = name or path.rpartition("/")[2]

        def add(answer: Callable[[Question, Parameters], Representation]) -> None:
            self.append(Resource(full, title, summary, parameters, answers, answer, whole, apart, dry))

        return add

    def read_by(
        self,
        path: str,
        summary: str,
        parameters: type[InPartition],
        answers: Any,
        *,
        name: str = "",
        whole: bool = False,
    ) -> Callable[[Callable[[Reading, InPartition], Any]], None]:
        """A resource of a partition, below its path. Its answer has no tag: it may change at any time."""

        def add(read: Callable[[Reading, InPartition], Any]) -> None:
            def answer(question: Question, asked: InPartition) -> Representation:
                reading = question.reading(asked.partition)
                return Representation(lambda: read(reading, asked))

            self.answered_by(path, summary, parameters, answers, name=name, whole=whole)(answer)

        return add
