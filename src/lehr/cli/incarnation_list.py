"""`lehr get incarnations`: versions of intent, and who committed them."""

from __future__ import annotations

from typing import Any

from lehr.base.moments import plain
from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.documents import of_incarnation
from lehr.cli.output import Column, Shape, show
from lehr.cli.stored import list_options, open_reading, remote_store, state_folder
from lehr.query.incarnations import IntentVersion, versions
from lehr.query.partition_view import Reading


@command()
@list_options(20)
def incarnations(limit: int, form: str) -> None:
    """List incarnations, newest first, with the author and the subject of their commits.

    If the newest commit was refused, tables show it first, with the codes of its errors; -o wide shows the
    errors.

    Examples:
        lehr get incarnations
        lehr get incarnations -o wide
        lehr get incarnations --limit 1 -o json
    """
    with open_reading() as reading:
        found = _versions(reading, limit)
        if form not in ("table", "wide"):
            found = [item for item in found if item.incarnation is not None]
        show(form, found, _shape(reading.now), nothing="no incarnations")


def _versions(reading: Reading, limit: int) -> list[IntentVersion]:
    """A server does this itself: the commits are on its disk."""
    remote = remote_store(reading)
    if remote is not None:
        return remote.intent.intent_versions(reading.partition, limit)
    from lehr import wiring

    folder = state_folder()
    return versions(reading, limit, lambda revision: wiring.past(folder, revision))


def _shape(now: float) -> Shape[IntentVersion]:
    columns: list[Column[IntentVersion]] = [
        Column("name", _name),
        Column("age", lambda item: formatting.age(item.at, now), narrow=True),
        Column("created", lambda item: formatting.moment(item.at) or "", wide=True),
        Column("assets", lambda item: _of(item, "assets")),
        Column("added", lambda item: _of(item, "added")),
        Column("changed", lambda item: _of(item, "changed")),
        Column("removed", lambda item: _of(item, "removed")),
        Column("digest", lambda item: _of(item, "digest"), wide=True),
        Column("revision", lambda item: _revision(item, 12), narrow=True),
        Column("revision", lambda item: _revision(item, None), wide=True),
        Column("acknowledged", _acknowledged, wide=True),
        Column("errors", lambda item: "; ".join(error.what for error in item.problems) or "-", wide=True),
        Column("author", lambda item: _author(item).partition(" <")[0], narrow=True),
        Column("author", _author, wide=True),
        Column("subject", lambda item: "-" if item.commit is None else item.commit.subject),
    ]
    return Shape(columns, _document, _name)


def _name(item: IntentVersion) -> str:
    if item.incarnation is not None:
        return item.incarnation.name
    return f"refused ({', '.join(sorted({error.code for error in item.problems}))})"


def _of(item: IntentVersion, field: str) -> str:
    return "-" if item.incarnation is None else str(getattr(item.incarnation, field))


def _author(item: IntentVersion) -> str:
    return "-" if item.commit is None else item.commit.author


def _revision(item: IntentVersion, most: int | None) -> str:
    """Revisions of the source that contains `lehr.yaml`, and of those it declares, by name."""
    declared = [source for source in item.sources if source.folder]
    names = [f"{source.folder.rpartition('/')[2]} {source.revision[:most]}" for source in declared]
    return ", ".join([item.sources[0].revision[:most], *names]) if item.sources else "-"


def _acknowledged(item: IntentVersion) -> str:
    guards = () if item.incarnation is None else item.incarnation.acknowledged
    return "; ".join(f"{held.code} {held.subject}: {held.reason}" for held in guards) or "-"


def _document(item: IntentVersion) -> dict[str, Any]:
    assert item.incarnation is not None
    commit = {} if item.commit is None else {"commit": plain(item.commit)}
    return {**of_incarnation(item.incarnation), **commit}
