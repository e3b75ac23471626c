"""`lehr blame`: where an asset, or a field of it, comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from lehr.base.clock import iso
from lehr.cli import formatting, terminal
from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.output import show_text
from lehr.cli.stored import (
    incarnation_option,
    open_reading,
    reading_options,
    remote_store,
    state_folder,
)
from lehr.model.provenance import Commit, Derivation
from lehr.query.blame_values import Blame, FieldBlame, Link, Maker, Source
from lehr.query.partition_view import Reading

_INDENT = " " * 16


@command()
@click.argument("asset", shell_complete=complete_asset)
@click.argument("field", required=False)
@incarnation_option("Incarnation to look at: 3, hello@3, latest, previous, or a time.", default="latest")
@reading_options("text", "json")
def blame(asset: str, field: str | None, incarnation: str, form: str) -> None:
    """Show which generators made ASSET, from which files and assets, and who last changed those.

    With FIELD, also show where its value comes from. The line of an asset file that sets the value, the
    generator that made it and the policy that set it are facts. Lehr does not know which input a generator
    took the value from; it lists the places in its input and code that contain the same value.

    Examples:
        lehr blame web/process
        lehr blame web/process payload.replicas
        lehr blame web/process /payload/command/0 --incarnation 3
        lehr blame web/process replicas -o json

    FIELD is a dotted path, with or without `payload.`, or a JSON pointer.
    """
    with open_reading() as reading:
        found = _look(reading, asset, field, incarnation)
    show_text(form, text(found), lambda: document(found))


def _look(reading: Reading, asset: str, field: str | None, incarnation: str) -> Blame:
    """The server must do the lookup: it needs files on its disk."""
    remote = remote_store(reading)
    if remote is not None:
        return remote.blame(reading.partition, asset, field, incarnation)
    from lehr import wiring
    from lehr.query.blame import blame as look

    folder = state_folder()
    return look(reading, lambda revision: wiring.past(folder, revision), asset, field, incarnation)


def text(found: Blame) -> Iterator[str]:
    """As text."""
    own = found.chain[0]
    yield terminal.style(_title(found, own), bold=True)
    if found.field is not None:
        yield from _field(found, own, found.field)
    for number, link in enumerate(found.chain):
        if number:
            yield ""
            yield _title(found, link)
        yield from _link(found, link)
    if not found.whole:
        yield ""
        yield "It was made from more inputs than are shown here."
    if not found.readable:
        names = ", ".join(source.source for source in found.sources if source.source != "lehr")
        yield ""
        yield f"Lines are not shown: this state has no copy of the sources of {found.incarnation}: {names}"


def document(found: Blame) -> dict[str, Any]:
    """As plain data, with times in RFC 3339."""
    from lehr.base.moments import plain

    built: dict[str, Any] = plain(found)
    for link in built["chain"]:
        for maker in link["makers"]:
            maker["by"] = dict(zip(Derivation.__struct_fields__, maker["by"], strict=True))
    return built


def _title(found: Blame, link: Link) -> str:
    partition = found.incarnation.rpartition("@")[0]
    since = f"unchanged since {partition}@{link.since}"
    if link.since == int(found.incarnation.rpartition("@")[2]):
        since = "changed in this incarnation"
    if found.since_pruned and link is found.chain[0]:
        since += " or earlier"
    return f"{link.id} ({link.type}) in {found.incarnation}, {since}"


def _link(found: Blame, link: Link) -> Iterator[str]:
    if link.declared is not None and link.recorded:
        yield from _source(found, "declared at", link.declared)
    elif link.declared is not None:
        yield _row("made by", "a generator; not recorded by the Lehr version of that time")
        yield from _source(found, "  from", link.declared)
    for maker in link.makers:
        yield from _maker(found, maker)


def _maker(found: Blame, maker: Maker) -> Iterator[str]:
    put = maker.addon or maker.path
    what = f"  ({put})" if put else ""
    title = "changed by" if maker.path else "annotated by" if maker.addon else "made by"
    yield from _source(found, title, maker.code, f"{maker.by.generator}, line {maker.by.line}{what}")
    shown = len(maker.files) + len(maker.assets)
    for file in maker.files:
        yield from _source(found, "  from", file)
    if maker.assets:
        noun = "asset" if len(maker.assets) == 1 else "assets"
        yield _row("  from", f"{noun} {', '.join(maker.assets)}")
    if maker.inputs > shown:
        kind = "file" if maker.by.over_files else "asset"
        rest = formatting.counted(maker.inputs - shown, f"more {kind}")
        yield _row("", f"and {rest}: everything that matches {maker.by.of}")


def _field(found: Blame, own: Link, field: FieldBlame) -> Iterator[str]:
    from lehr.cli.explanation_text import value

    partition = found.incarnation.rpartition("@")[0]
    yield ""
    yield f"{terminal.printable(field.pointer)} = {value(field.value)}"
    yield _row(
        "unchanged since", f"{partition}@{field.since}" + (" or earlier" if found.since_pruned else "")
    )
    if field.written is not None:
        yield from _source(found, "written at", field.written)
    elif own.declared is not None and own.declared.content and own.recorded and not field.makers:
        yield _row("default", f"not set in {own.declared.at.file}; this is the default of the type")
    for index in field.makers:
        maker = own.makers[index]
        yield _row("set by", f"{maker.by.generator}, line {maker.by.line}")
    for item in field.found:
        yield from _source(found, "value found at", item.source)
    if field.makers and not field.found and field.written is None:
        yield _row("value found at", "no input: it is computed, or the default of the type")
    if not field.searched_all:
        yield _row("", "there may be more places")
    yield ""


def _source(found: Blame, title: str, source: Source, what: str = "") -> Iterator[str]:
    line = what or str(source.at)
    newest = int(found.incarnation.rpartition("@")[2])
    if source.incarnation != newest:
        line += f"  (as of {found.incarnation.rpartition('@')[0]}@{source.incarnation})"
    yield _row(title, line)
    if source.text:
        yield _row("", f"| {source.text}")
    if source.commit is not None:
        yield _row("", terminal.style(_commit(source.commit), "cyan"))


def _commit(commit: Commit) -> str:
    content = terminal.printable(f"{commit.author}: {commit.subject}")
    return f"{commit.id[:12]} {iso(commit.time)[:10]} {content}"


def _row(title: str, content: str) -> str:
    return f"{title:<{len(_INDENT)}}{terminal.printable(content)}" if title else f"{_INDENT}{content}"
