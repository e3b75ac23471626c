"""`lehr types` and `lehr explain`: the types that may be declared."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lehr.cli.output import Column, Shape, output_option, show, show_document
from lehr.cli.stored import (
    found_state,
    open_read_store,
    open_reading,
    partition_option,
    registry,
    registry_of,
    state_option,
)

if TYPE_CHECKING:
    from lehr.model.types import Registry
    from lehr.query.types import FieldPage, TypePage

_WIDTH = 100

incarnation_option = click.option(
    "--incarnation",
    metavar="INCARNATION",
    help="As types were in 3, hello@3, latest, previous, or at a time; else as they are in the newest.",
)


@click.command(
    epilog="""
    \b
    Examples:
      lehr types
      lehr types -o name
    """
)
@incarnation_option
@output_option()
@state_option
@partition_option
def types(form: str, incarnation: str | None, state: Path | None, partition: str | None) -> None:
    """List every type of asset and addon: those of this installation, and those that the workspace declares.

    ROLE says what assets of the type are: production, governance (they configure checks), reference
    (they stand for something that others refer to), or an addon to other assets.
    """
    from lehr.query.types import pages

    shape: Shape[TypePage] = Shape(
        (
            Column("TYPE", lambda item: item.name),
            Column("ROLE", lambda item: item.role),
            Column("FROM", lambda item: item.origin, wide=True),
            Column("FORM", lambda item: item.form, wide=True),
            Column("VERSION", lambda item: str(item.version), wide=True),
            Column("MEANING", lambda item: item.summary),
        ),
        msgspec.to_builtins,
        lambda item: item.name,
    )
    show(form, pages(_known(state, partition, incarnation)), shape, nothing="no types")


@click.command(
    epilog="""
    \b
    Examples:
      lehr explain lehr.Process
      lehr explain lehr.Process.ports
      lehr explain lehr.Turndown -o json
    """
)
@click.argument("name", metavar="TYPE[.FIELD]")
@incarnation_option
@output_option("text", "json", "yaml")
@state_option
@partition_option
def explain(name: str, form: str, incarnation: str | None, state: Path | None, partition: str | None) -> None:
    """Say what a type or one of its fields is for, and what it may hold."""
    from lehr.query.types import find

    page, field = find(_known(state, partition, incarnation), name)
    if form != "text":
        show_document(form, msgspec.to_builtins(page if field is None else field))
        return
    print("\n".join(_told(page) if field is None else _told_field(page, field)))


def _known(state: Path | None, partition: str | None, incarnation: str | None) -> Registry:
    """Types of this installation, and those that an incarnation declares if there is a state."""
    from lehr.query.partition_view import choose_partition

    if incarnation is not None:
        with open_reading(state, partition) as reading:
            sequence = reading.incarnation(incarnation).sequence
            return registry_of(reading.store, reading.partition, sequence)
    folder = found_state(state)
    if folder is None:
        return registry()
    with open_read_store(folder) as store:
        partitions = store.intent.partitions()
        return registry_of(store, choose_partition(partitions, partition)) if partitions else registry()


def _told(page: TypePage) -> Iterator[str]:
    form = "" if page.form == "json" else f", {page.form}"
    version = "" if page.version == 1 else f", version {page.version}"
    yield f"{page.name}  ({page.role}, from {page.origin}{form}{version})"
    yield ""
    yield from _paragraphs("\n\n".join(text for text in (page.summary, page.description) if text), "")
    if page.fields:
        yield ""
        yield "fields"
        yield from _list(page.fields, "  ")


def _told_field(page: TypePage, field: FieldPage) -> Iterator[str]:
    yield f"{field.name} of {page.name}"
    yield ""
    yield f"  {_kind(field)}"
    yield from _paragraphs(field.meaning, "  ")
    if field.fields:
        yield ""
        yield "fields"
        yield from _list(field.fields, "  ")


def _list(fields: tuple[FieldPage, ...], indent: str) -> Iterator[str]:
    for field in fields:
        yield f"{indent}{field.name}  {_kind(field)}"
        yield from _paragraphs(field.meaning, f"{indent}    ")
        yield from _list(field.fields, f"{indent}    ")


def _kind(field: FieldPage) -> str:
    must = "required" if field.required else None if field.default is None else f"default {field.default}"
    return "; ".join((f"<{field.kind}>", *(item for item in (must, *field.limits) if item)))


def _paragraphs(text: str, indent: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n") if text else ()):
        if number:
            yield ""
        whole = " ".join(paragraph.split())
        yield from textwrap.wrap(whole, _WIDTH, initial_indent=indent, subsequent_indent=indent)
