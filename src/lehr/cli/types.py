"""`lehr types` and `lehr explain`: the types of assets and addons."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from lehr.cli.command import command
from lehr.cli.complete import complete_type_or_field
from lehr.cli.output import Column, Shape, show, show_text
from lehr.cli.stored import (
    found_state,
    incarnation_option,
    named_partition,
    open_read_store,
    open_reading,
    reading_options,
)
from lehr.model.types import Registry
from lehr.query.partition_view import choose_partition
from lehr.query.types import FieldPage, TypePage, field_of, find, pages
from lehr.wiring import known_types, registry_of

_WIDTH = 100

_incarnation_option = incarnation_option(
    "Types of this incarnation: 3, hello@3, latest, previous, or a time. Defaults to the newest."
)


@command()
@_incarnation_option
@reading_options()
def types(form: str, incarnation: str | None) -> None:
    """List all types of assets and addons: those of this installation and those declared in the workspace.

    ROLE is the role of such assets: production, governance (they configure checks), reference (they only
    represent something that others refer to), or an addon to other assets.

    Examples:
        lehr types
        lehr types -o name
    """
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
    show(form, pages(known(incarnation)), shape, nothing="no types")


@command()
@click.argument("name", metavar="TYPE[.FIELD]", shell_complete=complete_type_or_field)
@click.option(
    "--provider",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TYPE is one of the Terraform provider in this file of assets, which is started for that.",
)
@_incarnation_option
@reading_options("text", "json", "yaml")
def explain(name: str, form: str, incarnation: str | None, provider: Path | None) -> None:
    """Describe a type or one of its fields, and the values it accepts.

    Examples:
        lehr explain lehr.Process
        lehr explain lehr.Process.ports
        lehr explain lehr.Turndown -o json
        lehr explain --provider assets/aws.yaml aws_sqs_queue
    """
    page, field = find(known(incarnation), name) if provider is None else _of_provider(provider, name)
    lines = _type_lines(page) if field is None else _field_lines(page, field)
    show_text(form, lines, lambda: page if field is None else field)


def _of_provider(file: Path, name: str) -> tuple[TypePage, FieldPage | None]:
    import asyncio

    from lehr.cli.run_log import configure_logs
    from lehr.wiring.provider_types import provider_page

    configure_logs()
    type, *parts = name.split(".")
    page = asyncio.run(provider_page(file, type))
    return page, field_of(page, parts)


def known(incarnation: str | None) -> Registry:
    """Types of this installation, and those that an incarnation declares if there is a state."""
    if incarnation is not None:
        with open_reading() as reading:
            sequence = reading.incarnation(incarnation).sequence
            return registry_of(reading.store, reading.partition, sequence)
    folder = found_state()
    if folder is None:
        return known_types()
    with open_read_store(folder) as store:
        partitions = store.intent.partitions()
        if not partitions:
            return known_types()
        return registry_of(store, choose_partition(partitions, named_partition()))


def _type_lines(page: TypePage) -> Iterator[str]:
    form = "" if page.form == "json" else f", {page.form}"
    version = "" if page.version == 1 else f", version {page.version}"
    yield f"{page.name}  ({page.role}, from {page.origin}{form}{version})"
    yield ""
    yield from _paragraphs("\n\n".join(text for text in (page.summary, page.description) if text), "")
    yield from _fields(page.fields)


def _field_lines(page: TypePage, field: FieldPage) -> Iterator[str]:
    yield f"{field.name} of {page.name}"
    yield ""
    yield f"  {_kind(field)}"
    yield from _paragraphs(field.meaning, "  ")
    yield from _fields(field.fields)


def _fields(fields: tuple[FieldPage, ...]) -> Iterator[str]:
    if fields:
        yield ""
        yield "fields"
        yield from _list(fields, "  ")


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
