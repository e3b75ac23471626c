"""Opens the sources that `sources` in `lehr.yaml` declares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.model.declared_sources import DeclaredSource, DirectoryPlace, GitPlace, PartitionPlace, SqlPlace
from lehr.sdk.source import Source
from lehr.sources.directory import DirectorySource
from lehr.sources.git import GitSource
from lehr.sources.location import excluded_names, place_of
from lehr.sources.origin import local_path
from lehr.sources.released import ReadReleased, ReleasedSource
from lehr.sources.rows import AskRows, RowsSource
from lehr.sources.signatures import Signers


class SourceContext(msgspec.Struct, frozen=True):
    """Resources for reading declared sources.

    Attributes:
        state: the state directory, where sources keep what they have read.
        base: the directory that relative paths start from.
        blocking: makes the runner for the checks of one source, which may hang (invariant I9).
        ask: queries a database for rows.
        read: reads an incarnation of another partition.
        lender: another state directory that may already have fetched the repositories.
    """

    state: Path
    base: Path
    clock: Clock
    blocking: Callable[[str], Blocking]
    ask: AskRows
    read: ReadReleased
    lender: Path | None = None


def open_declared(name: str, declared: DeclaredSource, context: SourceContext) -> Source:
    """The source `declared` under `name`. Nothing is read before the first `newest`.

    Raises:
        StalledError: an allowed signing key is not valid.
    """
    kept, clock, blocking = context.state / "sources", context.clock, context.blocking(name)
    match declared:
        case GitPlace():
            return _git(declared, context, blocking)
        case DirectoryPlace():
            directory = (context.base / Path(declared.directory).expanduser()).absolute()
            return DirectorySource(
                directory,
                place_of(kept, str(directory)),
                clock=clock,
                exclude=excluded_names(directory, context.state),
                poll_seconds=declared.poll,
                blocking=blocking,
            )
        case SqlPlace():
            archive = place_of(kept, f"sql/{declared.sql}/{declared.query}/{name}")
            return RowsSource(declared, archive, context.ask, clock=clock, blocking=blocking)
        case PartitionPlace():
            archive = place_of(kept, f"partition/{declared.partition}")
            return ReleasedSource(declared, archive, context.read, clock=clock, blocking=blocking)


def _git(declared: GitPlace, context: SourceContext, blocking: Blocking) -> GitSource:
    repository = declared.git
    if "://" not in repository:
        beside = context.base / Path(repository).expanduser()
        if beside.exists() or local_path(repository) is not None:
            repository = str(beside)
    return GitSource(
        repository,
        place_of(context.state / "sources", repository),
        clock=context.clock,
        branch=declared.branch,
        tag=declared.tag,
        commit=declared.commit,
        path=declared.path,
        poll_seconds=declared.poll,
        blocking=blocking,
        signers=Signers(declared.signed_by) if declared.signed_by else None,
        lender=None if context.lender is None else place_of(context.lender / "sources", repository),
    )
