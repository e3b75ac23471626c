"""`lehr promote`: pin an incarnation of one partition as the source of another, as a commit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from lehr.base.errors import LehrError
from lehr.cli.editing import (
    Target,
    editing_options,
    scratch_folder,
    show_commit,
    show_refusal,
    target_of,
    validation,
)
from lehr.model.declared_sources import WORKSPACE_FILE

if TYPE_CHECKING:
    from lehr.editing import Change, Commit
    from lehr.model.incarnation import Incarnation

_MOST = 5


class Chosen(msgspec.Struct, frozen=True):
    """The promoted incarnation.

    Attributes:
        field: of the source's declaration that holds its location: `state` or `archive`.
        place: the folder or file.
        unproved: why it is not known to be what production has; empty if it is.
    """

    header: Incarnation
    field: str
    place: Path
    unproved: tuple[str, ...]


@click.command(
    epilog="""
    \b
    Examples:
      lehr promote staging@42 -m "Passed its tests"             in the workspace of production
      lehr promote staging@latest --from ../staging -m "The first time"
      lehr promote staging@42 --from staging-42.incarnation --unconverged "Proved in the old cell" -m "..."
      lehr promote staging@42 --in ssh://git@example.org/production.git --from /srv/staging -m "..."

    Ends with 1 when it is refused; nothing was written then.
    """
)
@click.argument("incarnation", metavar="PARTITION@N")
@click.option("-m", "--message", help="Why; of the commit.")
@click.option(
    "--from",
    "origin",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE",
    help="Workspace or state folder of that partition, or an exported file; else what lehr.yaml says.",
)
@click.option(
    "--to", "file", default=WORKSPACE_FILE, show_default=True, metavar="FILE", help="The file to write it to."
)
@click.option("--source", "name", help="Name of the source; else the one that has this partition.")
@click.option("--unconverged", metavar="REASON", help="Promote what production there does not have; and why.")
@editing_options
def promote(
    incarnation: str,
    message: str | None,
    origin: Path | None,
    file: str,
    name: str | None,
    unconverged: str | None,
    location: str | None,
    branch: str | None,
    kind: Literal["git", "directory"] | None,
    author: str | None,
    check: bool,
    dry_run: bool,
    state: Path | None,
    form: str,
) -> None:
    """Have this workspace read incarnation N (or `latest`) of another PARTITION as a source.

    Its number and digest are written into lehr.yaml, as a commit; comments and layout stay. Read is that
    content and no other, whatever becomes of the partition. Refused is what production there, when it was
    last looked at, did not have: it has proved nothing yet.
    """
    partition, _, number = incarnation.rpartition("@")
    if not partition or not (number.isdecimal() or number == "latest"):
        raise click.UsageError("Name an incarnation: staging@42, or staging@latest.")
    target = target_of(file, location, kind)
    if not message and not dry_run and target.kind != "directory":
        raise click.UsageError("Say why, with -m MESSAGE.")
    chosen = _chosen(partition, number, origin or _declared_origin(target, partition, name))
    if chosen.unproved and not unconverged:
        raise _not_converged(chosen)
    text = f"Promote {chosen.header.name}" + (f": {message}" if message else "")
    if chosen.unproved:
        text += f"\n\nNot converged: {unconverged}"
    made = _write(target, chosen, name, text, branch, author, dry_run, state, check)
    show_commit(made, form, dry_run)


def _write(
    target: Target,
    chosen: Chosen,
    name: str | None,
    message: str,
    branch: str | None,
    author: str | None,
    dry_run: bool,
    state: Path | None,
    check: bool,
) -> Commit:
    from lehr.base.clock import SystemClock
    from lehr.editing import EditError, edit

    def written(change: Change) -> Commit:
        return edit(
            target.location,
            [change],
            message,
            state=folder,
            clock=SystemClock(),
            kind=target.kind,
            branch=branch,
            path=target.path,
            author=author,
            check=validation(target.workspace, state, folder) if check else None,
            rehearse=dry_run,
        )

    with scratch_folder(None) as folder:
        try:
            return _first_of_both(written, target, chosen, name)
        except EditError as refused:
            show_refusal(refused.diagnostics)
            raise click.exceptions.Exit(1) from None


def _first_of_both(
    written: Callable[[Change], Commit], target: Target, chosen: Chosen, name: str | None
) -> Commit:
    """Pin it among the existing sources; if there are none yet, as the first."""
    from lehr.editing import Add, Compute, EditError

    try:
        pinned = pin(chosen, name, target.workspace)
        return written(Compute(file=target.file, path="sources", function=pinned))
    except EditError as refused:
        if [item.code for item in refused.diagnostics] != ["EDT002"]:
            raise
    first = pin(chosen, name, target.workspace)({})
    return written(Add(file=target.file, path="sources", value=first))


def pin(chosen: Chosen, name: str | None, workspace: Path | None) -> Callable[[Any], Any]:
    """A function of `sources` in lehr.yaml, which pins `chosen` in it.

    Called again because of another commit, it refuses to undo the pins of that commit.
    """
    partition = str(chosen.header.partition)
    seen: list[Any] = []

    def pinned(sources: Any) -> Any:
        if not isinstance(sources, dict):
            raise LehrError(
                f"`sources` in {WORKSPACE_FILE} is no mapping", code="CLI125", fix="see `lehr validate`"
            )
        named = name or _named(sources, partition) or partition
        before = sources.get(named, {})
        if not isinstance(before, dict) or before.get("partition", partition) != partition:
            raise LehrError(
                f"the source {named} is not partition {partition}",
                code="CLI126",
                fix="name another with --source",
            )
        if seen and seen[0] != before:
            raise LehrError(
                f"the source {named} changed while it was to be pinned",
                code="CLI127",
                why="somebody else has promoted",
                fix="look at it, and decide again",
            )
        seen.append(before)
        other = {"state", "archive"} - {chosen.field}
        entry = {"partition": partition, **{key: value for key, value in before.items() if key not in other}}
        entry[chosen.field] = _written(before.get(chosen.field), chosen, workspace)
        digest = str(chosen.header.digest)
        return {**sources, named: {**entry, "incarnation": chosen.header.sequence, "digest": digest}}

    return pinned


def _named(sources: dict[str, Any], partition: str) -> str | None:
    """The one source that has the partition; None for none.

    Raises:
        LehrError: several have.
    """
    found = [
        name
        for name, value in sources.items()
        if isinstance(value, dict) and value.get("partition") == partition
    ]
    if len(found) > 1:
        raise LehrError(
            f"several sources have partition {partition}: {', '.join(found)}",
            code="CLI128",
            fix="name one with --source",
        )
    return found[0] if found else None


def _written(before: Any, chosen: Chosen, workspace: Path | None) -> str:
    """Its location, as the file spells it: as before if that is the same, else relative to the workspace."""
    place = chosen.place.expanduser().absolute()
    if workspace is None:  # a relative path has its meaning there, not here
        return before if isinstance(before, str) and chosen.field == "state" else str(place)
    if isinstance(before, str) and (workspace / Path(before).expanduser()).resolve() == place.resolve():
        return before
    return os.path.relpath(place, workspace.absolute())


def _declared_origin(target: Target, partition: str, name: str | None) -> Path:
    """Where the workspace locates the partition.

    Raises:
        LehrError: it has no location, or one that is not on this machine.
    """
    from lehr.base.documents import load

    path = None if target.workspace is None else target.workspace / target.file
    if path is not None and path.is_file():
        loaded = load(WORKSPACE_FILE, path.read_bytes()).documents
        value = loaded[0].value if len(loaded) == 1 else None
        sources = value.get("sources") if isinstance(value, dict) else None
        if isinstance(sources, dict):
            entry = sources.get(name or _named(sources, partition))
            place = (entry.get("state") or entry.get("archive")) if isinstance(entry, dict) else None
            if isinstance(place, str):
                return path.parent / Path(place).expanduser()
    raise LehrError(
        f"it is not known where partition {partition} is",
        code="CLI129",
        why=f"no source in {target.file} says so" if path else "the workspace is not on this machine",
        fix="name its workspace or state folder, or a file that it was exported to, with --from",
    )


def _chosen(partition: str, number: str, origin: Path) -> Chosen:
    """The incarnation, out of a state folder or an exported file.

    Raises:
        LehrError: it is not there.
    """
    from lehr import wiring
    from lehr.base.clock import SystemClock
    from lehr.cli.stored import inert_in
    from lehr.control.state_folder import named_state
    from lehr.query.partition_view import Reading, choose_partition
    from lehr.query.promotion import not_in_production
    from lehr.store.archive import open_archive

    if origin.is_file():
        with open_archive(origin) as archive:
            header = archive.header
        if header.partition != partition or number not in ("latest", str(header.sequence)):
            raise LehrError(
                f"{origin} holds {header.name}, not {partition}@{number}",
                code="CLI130",
                fix="name another file",
            )
        return Chosen(header, "archive", origin, ("an exported file does not say what production has",))
    store = wiring.open_store(
        named_state(origin), read_only=True
    )  # not the one of LEHR_STORE, which is this partition's
    try:
        known = choose_partition(store.intent.partitions(), partition)
        reading = Reading(store, known, SystemClock().now(), inert_in(store, known))
        header = reading.incarnation(f"{partition}@{number}")
        return Chosen(header, "state", origin, tuple(not_in_production(reading, header.sequence)))
    finally:
        store.close()


def _not_converged(chosen: Chosen) -> LehrError:
    shown = "; ".join(chosen.unproved[:_MOST])
    more = f"; and {len(chosen.unproved) - _MOST} more" if len(chosen.unproved) > _MOST else ""
    return LehrError(
        f"production of partition {chosen.header.partition} does not have what {chosen.header.name} says",
        code="CLI131",
        why=shown + more,
        fix="wait until it has (`lehr wait`), or say with --unconverged REASON why it may be promoted",
    )
