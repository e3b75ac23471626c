"""Resources that explain: why an asset has its status, root causes, neighbours, rollouts, types.

Each answers the value that a command prints with `-o json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from lehr.enforce.replay import Replay, replay
from lehr.http.parameters import continued, incarnation_at, moment_of
from lehr.http.problems import ProblemError, meaning
from lehr.http.questions import (
    At,
    Catalogue,
    CursorText,
    Id,
    OfPartition,
    PageLimit,
    Question,
    Representation,
)
from lehr.model.asset import AssetId
from lehr.model.provenance import Commit
from lehr.model.reason import Reason
from lehr.query.asset_rows import known_asset
from lehr.query.cause_inputs import CauseInputs, cause_inputs
from lehr.query.cause_reader import read_root_causes
from lehr.query.causes import Cause, RootCauses, cause_order
from lehr.query.explain import explain
from lehr.query.explain_at import explain_at
from lehr.query.incarnations import commit_of
from lehr.query.list_cursor import list_cursor
from lehr.query.neighbourhood import MOST_HOPS, Neighbourhood, neighbourhood
from lehr.query.partition_view import Reading
from lehr.query.types import TypePage, find, pages
from lehr.rollouts.status import RolloutStatus
from lehr.strategist.documents import (
    RolloutDocument,
    RolloutEvent,
    Why,
    event_document,
    release_awaited,
    rollout_document,
    rollout_events,
    why_document,
)
from lehr.strategist.overview import Rollouts

EXPLANATIONS = Catalogue()

_MOST_KEPT = 64
"""How many answers about root causes are kept until the next change."""

# --- why -----------------------------------------------------------------------------


class OfWhy(OfPartition, frozen=True):
    """Of which asset, and at which time."""

    asset: Id
    at: Annotated[
        str,
        Meta(description="A time in RFC 3339: why it had its status then; by default now.", max_length=40),
    ] = ""


@EXPLANATIONS.answered_by(
    "why", "Why an asset has its status: what blocks it, since when, and how to unblock it.", OfWhy, Why
)
def _why(question: Question, asked: OfWhy) -> Representation:
    reading = question.reading(asked.partition)

    def make() -> Why:
        if asked.at:
            moment = moment_of(asked.at, "at")
            with meaning("NotFound"):
                past, explanation = explain_at(reading, asked.asset, moment)
            return why_document(explanation, None, past)
        with meaning("NotFound"):
            explanation = explain(reading, asked.asset)
        awaited = None
        if any(row.reason == Reason.AWAITING_RELEASE for row in explanation.rows):
            awaited = release_awaited(reading, explanation, rollouts_of(question, reading))
        return why_document(explanation, awaited)

    return Representation(make)


class OfReplay(OfPartition, frozen=True):
    """Of which decision."""

    decision: Annotated[int, Meta(description="Number of the decision.", ge=0, le=2**53)]


@EXPLANATIONS.answered_by(
    "replay",
    "A decision, decided again from what was recorded with it: whether it is the same.",
    OfReplay,
    Replay,
)
def _replay(question: Question, asked: OfReplay) -> Representation:
    reading = question.reading(asked.partition)

    def make() -> Replay:
        with meaning("NotFound"):
            return replay(reading, asked.decision)

    return Representation(make)


class OfCauses(OfPartition, frozen=True):
    """Which page, and how much of each cause."""

    of: Annotated[str, Meta(description="Only the cause that this asset counts under.", max_length=200)] = ""
    examples: Annotated[int, Meta(description="Assets to name for each cause.", ge=0, le=1000)] = 5
    limit: PageLimit = 100
    cursor: CursorText = ""


class CausePage(msgspec.Struct, frozen=True):
    """Root causes, the one with most assets first.

    Attributes:
        count: assets that are not converged, or wait for a release; each counts under one cause. Of the
            asset's own cause only, if that is asked for.
        total: number of causes.
        cursor: where the next page begins; empty if this is the last. Causes may change between two pages.
    """

    count: int
    total: int
    causes: list[Cause]
    cursor: str = ""


@EXPLANATIONS.answered_by(
    "causes",
    "Root causes: the ends of the chains along which unsettled assets wait.",
    OfCauses,
    CausePage,
    whole=True,
)
def _causes(question: Question, asked: OfCauses) -> Representation:
    reading = question.reading(asked.partition)
    after = continued(asked.cursor, "causes", reading.partition)

    def make() -> CausePage:
        of = AssetId(asked.of) if asked.of else None
        found = _root_causes(question, reading, asked.examples, of)
        if of is not None and not found.causes:
            with meaning("NotFound"):
                known_asset(reading, of)
        ahead = [cause for cause in found.causes if after is None or cause_order(cause) > after]
        shown = ahead[: asked.limit]
        more = len(ahead) > len(shown)
        cursor = list_cursor("causes", reading.partition, *cause_order(shown[-1])) if more else ""
        return CausePage(found.count, len(found.causes), shown, cursor)

    return Representation(make)


class _KeptCauses(NamedTuple):
    """Root causes of one time.

    Attributes:
        found: by how many assets of a cause are named, and of which asset the cause is.
    """

    inputs: CauseInputs
    found: Mapping[tuple[int, AssetId | None], RootCauses]


def _root_causes(question: Question, reading: Reading, most: int, of: AssetId | None) -> RootCauses:
    """As `read_root_causes`, which is asked at most once per change of the store, however many follow it."""

    def updated(before: _KeptCauses | None) -> _KeptCauses:
        inputs = cause_inputs(reading, None if before is None else before.inputs)
        same = before is not None and before.inputs.position == inputs.position
        found = before.found if before is not None and same and len(before.found) < _MOST_KEPT else {}
        if (most, of) in found:
            return _KeptCauses(inputs, found)
        causes = read_root_causes(reading, most=most, of=of, inputs=inputs)
        return _KeptCauses(inputs, {**found, (most, of): causes})

    return question.kept.updated(("causes", reading.partition), updated).found[most, of]


class OfGraph(OfPartition, frozen=True):
    """Around which asset, and how far."""

    around: Id
    hops: Annotated[int, Meta(description="How many references away.", ge=1, le=MOST_HOPS)] = 1


@EXPLANATIONS.answered_by(
    "graph",
    "Assets around one: those that it refers to, those that refer to it, and theirs.",
    OfGraph,
    Neighbourhood,
)
def _graph(question: Question, asked: OfGraph) -> Representation:
    reading = question.reading(asked.partition)

    def make() -> Neighbourhood:
        newest = reading.newest()
        sequence = 0 if newest is None else newest.sequence
        registry = question.installation.types(question.store, reading.partition, sequence)
        with meaning("NotFound"):
            return neighbourhood(reading, registry, asked.around, asked.hops)

    return Representation(make)


# --- rollouts -------------------------------------------------------------------------


def rollouts_of(question: Question, reading: Reading) -> Rollouts | None:
    """The rollouts now; None before the first incarnation."""
    newest = reading.newest()
    if newest is None:
        return None
    installation = question.installation
    registry = installation.types(question.store, reading.partition, newest.sequence)
    return Rollouts(question.store, registry, newest, reading.partition, reading.now, installation.calendars)


def require_rollouts(question: Question, reading: Reading, policy: str) -> Rollouts:
    """The rollouts now, to find that of a policy.

    Raises:
        ProblemError: nothing is published yet.
    """
    rollouts = rollouts_of(question, reading)
    if rollouts is None:
        raise ProblemError(
            "NotFound",
            f"there is no rollout policy {policy}",
            code="HTP136",
            why="nothing is published yet",
            fix="see /rollouts",
        )
    return rollouts


@EXPLANATIONS.answered_by(
    "rollouts", "The rollouts of all policies in force.", OfPartition, list[RolloutStatus], whole=True
)
def _rollouts(question: Question, asked: OfPartition) -> Representation:
    reading = question.reading(asked.partition)

    def make() -> list[RolloutStatus]:
        rollouts = rollouts_of(question, reading)
        return [] if rollouts is None else rollouts.all()

    return Representation(make)


class OfRollout(OfPartition, frozen=True):
    """Of which policy."""

    id: Annotated[str, Meta(description="Id of the rollout policy.", max_length=200)]


@EXPLANATIONS.answered_by(
    "rollouts/{id}",
    "The rollout of a policy: its target, its wave, each unit, and what it waits for.",
    OfRollout,
    RolloutDocument,
    name="rollout",
    whole=True,
)
def _rollout(question: Question, asked: OfRollout) -> Representation:
    reading = question.reading(asked.partition)

    def make() -> RolloutDocument:
        with meaning("NotFound", "see /rollouts"):
            status = require_rollouts(question, reading, asked.id).of(asked.id)
        return rollout_document(status, _commit(question, reading, status.target))

    return Representation(make)


def _commit(question: Question, reading: Reading, sequence: int) -> Commit | None:
    header = reading.intent.incarnation(reading.partition, sequence) if sequence else None
    return None if header is None else commit_of(header.sources, question.installation.history)


class OfRolloutHistory(OfPartition, frozen=True):
    """Of which policy, and which page."""

    policy: Annotated[str, Meta(description="Only of this rollout policy.", max_length=200)] = ""
    limit: PageLimit = 100
    cursor: CursorText = ""


class RolloutEventPage(msgspec.Struct, frozen=True):
    """Events of rollouts, newest first.

    Attributes:
        cursor: where the next page begins; empty if this is the last.
    """

    events: list[RolloutEvent]
    cursor: str = ""


@EXPLANATIONS.answered_by(
    "rollout-history",
    "Events of rollouts, newest first.",
    OfRolloutHistory,
    RolloutEventPage,
    whole=True,
)
def _rollout_history(question: Question, asked: OfRolloutHistory) -> Representation:
    reading = question.reading(asked.partition)
    name = f"rollout-history of {asked.policy or 'all policies'}"
    before = continued(asked.cursor, name, reading.partition)

    def make() -> RolloutEventPage:
        with meaning("NotFound", "see /rollouts"):
            found = rollout_events(reading, asked.policy or None)
        ahead = [item for item in found if before is None or item.number < before[0]]
        shown = ahead[: asked.limit]
        more = len(ahead) > len(shown)
        cursor = list_cursor(name, reading.partition, shown[-1].number) if more else ""
        return RolloutEventPage(list(map(event_document, shown)), cursor)

    return Representation(make)


# --- types ----------------------------------------------------------------------------


class OfTypes(OfPartition, frozen=True):
    """In which incarnation."""

    at: At = "latest"


@EXPLANATIONS.answered_by("types", "All types of assets and addons, by name.", OfTypes, list[TypePage])
def _types(question: Question, asked: OfTypes) -> Representation:
    reading = question.reading(asked.partition)
    sequence = _sequence(reading, asked.at)
    types = question.installation.types
    return Representation(lambda: pages(types(question.store, reading.partition, sequence)))


class OfType(OfPartition, frozen=True):
    """Of which type, in which incarnation."""

    name: Annotated[str, Meta(description="Name of the type: lehr.File.", max_length=200)]
    at: At = "latest"


@EXPLANATIONS.answered_by(
    "types/{name}", "A type, field by field, and the values that it accepts.", OfType, TypePage, name="type"
)
def _type(question: Question, asked: OfType) -> Representation:
    reading = question.reading(asked.partition)
    sequence = _sequence(reading, asked.at)

    def make() -> TypePage:
        registry = question.installation.types(question.store, reading.partition, sequence)
        with meaning("NotFound", "see /types"):
            found, field = find(registry, asked.name)
        if field is not None:
            raise ProblemError(
                "NotFound",
                f"{asked.name} is a field, not a type",
                code="HTP137",
                fix=f"see /types/{found.name}, which has all of its fields",
            )
        return found

    return Representation(make)


def _sequence(reading: Reading, at: str) -> int:
    """The incarnation to list types of; 0 before the first."""
    if at == "latest" and reading.newest() is None:
        return 0
    header = incarnation_at(reading, at)
    reading.intent.require_kept(reading.partition, header.sequence)
    return header.sequence
