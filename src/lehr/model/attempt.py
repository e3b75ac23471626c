"""Attempts to publish: the result for the newest revision."""

from __future__ import annotations

import enum

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.moments import Moment
from lehr.model.asset import AssetId, Partition
from lehr.model.incarnation import SourceRevision


class Publication(enum.StrEnum):
    """Result of a pass. Only PUBLISHED changes what is in force.

    UNCHANGED: the revision declares what the newest incarnation holds already.
    """

    PUBLISHED = "published"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNREADABLE = "unreadable"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over the newest revision.

    Attributes:
        sources: revisions that it read; empty when the source could not be read.
        sequence: the incarnation that is in force after it; 0 for none.
        changed: ids that the new incarnation changed.
        diagnostics: all problems; errors among them exactly when it was refused or unreadable.
        seconds: how long each step took, by name.
    """

    partition: Partition
    at: Moment
    publication: Publication
    sources: tuple[SourceRevision, ...]
    sequence: int
    changed: tuple[AssetId, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    seconds: dict[str, float] = {}
