"""Incarnations with the commits that they were made from, and the newest commit if it was refused."""

from __future__ import annotations

import msgspec

from lehr.base.diagnostics import Diagnostic, errors
from lehr.base.moments import Moment
from lehr.model.attempt import Publication
from lehr.model.incarnation import Incarnation, SourceRevision
from lehr.model.provenance import Commit
from lehr.query.joined import History
from lehr.query.partition_view import Reading


class IntentVersion(msgspec.Struct, frozen=True):
    """A version of intent.

    Attributes:
        at: wall-clock seconds when it was published or refused.
        incarnation: None for a refused version.
        sources: the revisions that it was made from, that of `lehr.yaml` first.
        commit: the commit that the first revision names; None if it names none that is still stored.
        problems: the errors for which it was refused.
    """

    at: Moment
    incarnation: Incarnation | None
    sources: tuple[SourceRevision, ...]
    commit: Commit | None = None
    problems: tuple[Diagnostic, ...] = ()


def versions(reading: Reading, limit: int, history: History, before: int = 0) -> list[IntentVersion]:
    """The versions of intent, newest first.

    Args:
        limit: of incarnations. Of refused versions, only one that is newer than all of them is known.
        before: sequence of an incarnation: only older ones; 0 for all.
    """
    incarnations = reading.intent.incarnations(reading.partition, limit, before)
    found = [
        IntentVersion(item.created_at, item, item.sources, commit_of(item.sources, history))
        for item in incarnations
    ]
    last = None if before else reading.records.attempt(reading.partition)
    if last is None or last.publication is not Publication.REFUSED:
        return found
    commit = commit_of(last.sources, history)
    return [IntentVersion(last.at, None, last.sources, commit, tuple(errors(last.diagnostics))), *found]


def commit_of(sources: tuple[SourceRevision, ...], history: History) -> Commit | None:
    """The commit that the first of these revisions names; None if it names none that is still stored."""
    past = history(sources[0]) if sources else None
    return None if past is None else past.commit
