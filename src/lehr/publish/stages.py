"""The stages of a pass from a source to an incarnation. Pure values.

    Begun -> Read -> Generated -> Compared -> Consulted -> Judged -> Ended

Each stage includes the previous one. A step takes one stage and returns the next, or the end of the pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.model.attempt import Publication
from lehr.model.incarnation import AssetChange, Candidate, Incarnation, SourceRevision
from lehr.publish.claims import Claimed
from lehr.sdk.asked_validator import Answered
from lehr.sdk.claims import Conflict
from lehr.sdk.generation import Generated as Output
from lehr.sdk.source import Snapshot
from lehr.sdk.validator import Answers
from lehr.validate import DeltaProposal

S = TypeVar("S", bound="Begun")


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing has been done yet.

    Attributes:
        at: wall-clock seconds.
    """

    at: float
    may_be_overtaken: bool = False


class Read(Begun, frozen=True, kw_only=True):
    """A new revision was read."""

    snapshot: Snapshot


class Generated(Read, frozen=True, kw_only=True):
    """Its assets were generated without errors."""

    output: Output
    diagnostics: tuple[Diagnostic, ...]


class Compared(Generated, frozen=True, kw_only=True):
    """The differences from the newest incarnation are known."""

    candidate: Candidate
    changes: tuple[AssetChange, ...]


class Consulted(Compared, frozen=True, kw_only=True):
    """Databases, plugins and the register of claims have answered validation's questions."""

    answers: Answers
    answered: Sequence[Answered] = ()
    claimed: Claimed = {}
    conflicts: Sequence[Conflict] = ()


class Judged(Consulted, frozen=True, kw_only=True):
    """Validation found no errors."""

    proposal: DeltaProposal


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a pass has ended.

    Attributes:
        sources: sources of the revision that was read or refused.
        generated_from: the files that its diagnostics point into; None if generation did not get that far.
        incarnation: the one that was published.
    """

    publication: Publication
    diagnostics: tuple[Diagnostic, ...] = ()
    sources: tuple[SourceRevision, ...] = ()
    changes: tuple[AssetChange, ...] = ()
    generated_from: Snapshot | None = None
    incarnation: Incarnation | None = None


def advance(stage: Begun, to: type[S], **more: Any) -> S:
    """The stage `to`, with everything in `stage` plus `more`."""
    return to(**{**msgspec.structs.asdict(stage), **more})
