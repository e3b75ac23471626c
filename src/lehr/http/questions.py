"""The parts of a resource."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from lehr.base.clock import Clock
from lehr.http.limits import FILTER_LENGTH, Limits
from lehr.http.problems import meaning
from lehr.model.asset import Partition
from lehr.model.types import Registry
from lehr.query.asset_pages import Sieve
from lehr.query.joined import History
from lehr.query.partition_view import Inert, Reading, choose_partition
from lehr.sdk.store import Store

PartitionName = Annotated[str, Meta(description="Name of the partition.", max_length=63)]
Id = Annotated[str, Meta(description="Id of the asset; its slashes may stand as they are.", max_length=200)]
At = Annotated[
    str,
    Meta(description="Incarnation: a number, latest, previous, or a time in ISO 8601.", max_length=80),
]
FilterText = Annotated[
    str, Meta(description="Condition in CEL over id, type, payload, addons.", max_length=FILTER_LENGTH)
]
Types = Annotated[str, Meta(description="Types, with commas between.", max_length=2000)]
SelectorText = Annotated[
    str,
    Meta(description="Only what this selects, too: an id, a pattern, type=T, label:K=V.", max_length=2000),
]
Limit = Annotated[int, Meta(ge=1, le=100_000)]
Fields = Annotated[
    str, Meta(description="Fields to send, with commas between: payload.replicas,addons.", max_length=2000)
]


class Installation(NamedTuple):
    """What the server's installation knows and its store does not.

    Attributes:
        inert: of a partition, the assets that have no production.
        types: of an incarnation, by its sequence: those that it declares, and those installed.
        history: what incarnations were made from.
    """

    inert: Callable[[Store, Partition], Inert]
    types: Callable[[Store, Partition, int], Registry]
    history: History


class Question(NamedTuple):
    """The context of a question, besides its parameters."""

    store: Store
    clock: Clock
    limits: Limits
    installation: Installation
    sieve: Sieve | None = None

    def reading(self, partition: str) -> Reading:
        """The partition.

        Raises:
            ProblemError: no partition has this name.
        """
        with meaning("NotFound", "ask for /v1/partitions"):
            chosen = choose_partition(self.store.intent.partitions(), partition)
        return Reading(self.store, chosen, self.clock.now(), self.installation.inert(self.store, chosen))


class Answer(NamedTuple):
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
        whole: it is about everything, unless one asset is named.
        apart: it is answered at once, whatever else is waiting.
    """

    path: str
    name: str
    summary: str
    parameters: type[msgspec.Struct]
    answers: Any
    answer: Callable[[Question, Any], Answer]
    whole: bool = False
    apart: bool = False


class NoParameters(msgspec.Struct, frozen=True):
    """No parameters."""


class OfPartition(msgspec.Struct, frozen=True):
    """Of a partition as a whole."""

    partition: PartitionName
