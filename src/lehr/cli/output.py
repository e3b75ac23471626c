"""The formats of lists: `-o table|wide|json|yaml|name`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import click
import msgspec

from lehr.cli import terminal
from lehr.cli.pager import page

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

FORMATS = ("table", "wide", "json", "yaml", "name")


class Column(NamedTuple, Generic[T]):
    """A column of a table. `wide` columns only appear with `-o wide`, and replace `narrow` ones."""

    title: str
    cell: Callable[[T], str]
    wide: bool = False
    narrow: bool = False


class Shape(NamedTuple, Generic[T]):
    """How items of one kind are shown.

    Attributes:
        document: the item as plain data, with times in ISO 8601.
        name: its identifier, as accepted by other commands.
    """

    columns: Sequence[Column[T]]
    document: Callable[[T], Any]
    name: Callable[[T], str]


def output_option(*formats: str) -> Callable[[Function], Function]:
    """The option `-o` with these formats; the first is the default. With JSON, errors are JSON as well."""

    def chosen(context: click.Context, _parameter: click.Parameter, form: str) -> str:
        context.find_root().ensure_object(dict)["form"] = form
        return form

    return click.option(
        "-o",
        "--output",
        "form",
        callback=chosen,
        type=click.Choice(formats or FORMATS),
        default=(formats or FORMATS)[0],
        show_default=True,
        help="Output format.",
    )


def show(form: str, items: Sequence[T], shape: Shape[T], *, nothing: str) -> None:
    """Write `items` to stdout in the format `form`; print `nothing` on stderr if there are none."""
    if form == "name":
        for item in items:
            print(shape.name(item))
    elif form in ("json", "yaml"):
        show_document(form, [shape.document(item) for item in items])
    elif not items:
        click.echo(nothing, err=True)
    else:
        page(ItemWriter[T](form).lines(items, shape))


class ItemWriter(Generic[T]):
    """Writes items to stdout as they arrive: as JSON, one on each line; as YAML, a document for each."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._table: terminal.GrowingTable | None = None

    def write(self, items: Sequence[T], shape: Shape[T]) -> None:
        """Write the next items."""
        if items:
            print("\n".join(self.lines(items, shape)), flush=True)

    def lines(self, items: Sequence[T], shape: Shape[T]) -> list[str]:
        """The lines of the next items."""
        match self._form:
            case "name":
                return [shape.name(item) for item in items]
            case "json":
                return [json_line(shape.document(item)) for item in items]
            case "yaml":
                return [f"---\n{yaml_text(shape.document(item))}".rstrip("\n") for item in items]
        wide = self._form == "wide"
        columns = [item for item in shape.columns if not (item.narrow if wide else item.wide)]
        if self._table is None:
            self._table = terminal.GrowingTable([column.title for column in columns])
        rows = [[column.cell(item) for column in columns] for item in items]
        return self._table.lines(rows, None if wide else terminal.width())


def json_line(document: Any) -> str:
    """Plain data as JSON on one line."""
    return msgspec.json.encode(document).decode()


def show_text(form: str, lines: Iterable[str], document: Callable[[], Any]) -> None:
    """Write `lines` to stdout if `form` is text; otherwise the document, as JSON or YAML."""
    if form == "text":
        page(lines)
    else:
        show_document(form, document())


def show_document(form: str, document: Any) -> None:
    """Write plain data to stdout as JSON or YAML."""
    if form == "json":
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    print(yaml_text(document), end="")


def yaml_text(document: Any) -> str:
    """Plain data as YAML, with block style for text of several lines."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """PyYAML does not use block style for text with tabs or trailing blanks, although YAML allows it."""

        def analyze_scalar(self, scalar: str) -> Any:
            analysis = super().analyze_scalar(scalar)
            analysis.allow_block = analysis.allow_block or _style(scalar) == "|"
            return analysis

        def determine_block_hints(self, text: str) -> str:
            hints = super().determine_block_hints(text)
            # The indentation of a block cannot be distinguished from a line that begins with
            # a blank.
            blank = text.lstrip("\n")[:1] in (" ", "\t") and not hints[:1].isdigit()
            return f"{self.best_indent}{hints}" if blank else hints

    def text_of(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))

    Dumper.add_representer(str, text_of)
    plain = msgspec.to_builtins(document, str_keys=True)
    return yaml.dump(plain, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)


def _style(text: str) -> str | None:
    """The style in which YAML 1.2 reads `text` back, which PyYAML does not support; None for its own."""
    from lehr.base.documents.scalars import resolve

    lines = text.split("\n")
    if len(lines) > 1 and text.strip("\n") and all(line.replace("\t", "").isprintable() for line in lines):
        return "|"
    if not all(line.isprintable() for line in lines):
        return '"'
    try:
        return None if resolve(text) == text else '"'
    except ValueError:
        return '"'


def print_lines(lines: Iterable[str]) -> None:
    """Write `lines` to stdout, without a pager."""
    for line in lines:
        print(line)


def bounded(items: Sequence[T], limit: int | None, noun: str) -> Sequence[T]:
    """The first `limit` of `items`; reports on stderr how many were omitted."""
    if limit is None or len(items) <= limit:
        return items
    click.echo(f"showing {limit:,} of {len(items):,} {noun}; --all shows all", err=True)
    return items[:limit]
