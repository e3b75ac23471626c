"""Turns a requested change into the few characters that make it.

The result is not trusted: `file_edit` parses it again, and refuses it if it is not as requested.
"""

from __future__ import annotations

import re
from typing import Any

from lehr.base.documents.nodes import Entry, Node, line_end, line_start
from lehr.editing.text_lines import Splice, begins_line, column, newline_of
from lehr.editing.value_text import TomlWriter, ValueWriter, YamlWriter, literal

_COLON = re.compile(r"\s*:")
_HEADER = re.compile(r"[|>][-+0-9]*")
_BLANKS = re.compile(r"(?:[ \t]*\r?\n)*\Z")
_FILLING = re.compile(r"(?:\s|#[^\n]*)*")
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|\Z)")


class CannotSpliceError(Exception):
    """This layout is not supported; the message has the reason."""


class Splicer:
    """Makes the splices of one text."""

    def __init__(self, text: str, writer: ValueWriter) -> None:
        self._text = text
        self._writer = writer
        self._newline = newline_of(text)

    def replace(self, holder: Node, number: int, value: Any) -> list[Splice]:
        """Replace the value of entry `number` of `holder`.

        A block stays a block if the new value can be one; everything else is written in one line.

        Raises:
            CannotSpliceError: the value cannot be separated from the text around it.
            ValueError: the format cannot hold the value.
        """
        entry = holder.entries[number]
        node = entry.value
        if isinstance(self._writer, TomlWriter) and not node.inline:
            raise CannotSpliceError("it is a table with lines of its own")
        if not node.inline and node.entries:
            return self._replace_block(entry, value)
        if not node.inline:
            return self._replace_block_scalar(holder, entry, value)
        written = self._writer.inline(value, node, nested=holder.inline)
        space = (
            " " if node.start == node.end and self._text[node.start - 1 : node.start] in {":", "-"} else ""
        )
        return [Splice(node.start, node.end, space + written)]

    def add(self, holder: Node, key: str | None, value: Any) -> list[Splice]:
        """Add an entry, or an item if `key` is None, after the last of `holder`.

        Raises:
            CannotSpliceError: the text does not show where it would go.
            ValueError: the format cannot hold the value.
        """
        written = self._writer.inline(value)
        written = written if key is None else self._writer.pair(key, written)
        if holder.after is not None:
            return [self._new_line(holder.after, "", written)]
        if holder.inline:
            return self._add_inline(holder, written)
        if not holder.entries or isinstance(self._writer, TomlWriter):
            raise CannotSpliceError("the text does not show where it would go")
        last = holder.entries[-1]
        indent = " " * column(self._text, holder.entries[0].start)
        end = self._block_end(last.value)
        return [self._new_line(end, indent, written if key is not None else f"- {written}")]

    def delete(self, holder: Node, number: int) -> list[Splice]:
        """Remove entry `number` from `holder`, which has others, with any comment in its line.

        Raises:
            CannotSpliceError: it cannot be cut out.
        """
        entry = holder.entries[number]
        if isinstance(self._writer, TomlWriter) and not entry.value.inline:
            raise CannotSpliceError("it is a table with lines of its own")
        if holder.inline:
            return self._delete_inline(holder, number)
        text, end = self._text, self._block_end(entry.value)
        if begins_line(text, entry.start):
            return [Splice(line_start(text, entry.start), end, "")]
        if number + 1 == len(holder.entries):
            raise CannotSpliceError("it is not at the beginning of its line")
        following = holder.entries[number + 1].start
        if text[end:following].strip():  # comments: the dash keeps its line, and they theirs
            return [Splice(len(text[: entry.start].rstrip(" ")), end, self._newline)]
        return [Splice(entry.start, following, "")]

    def empty(self, holder: Node, number: int, node: Node) -> list[Splice]:
        """Write `node`, a block whose only entry is removed, as an empty list or mapping.

        Args:
            holder: the node with it as entry `number`; the documents, if it is at the top of one.
        """
        value: Any = {} if node.kind == "mapping" else []
        if holder.kind != "documents":
            return self.replace(holder, number, value)
        written = self._writer.inline(value)
        start, end = node.entries[0].start, node.entries[-1].value.end
        if self._text[start:end].endswith("\n"):
            written += self._newline
        return [Splice(start, end, written)]

    def _replace_block(self, entry: Entry, value: Any) -> list[Splice]:
        text, node = self._text, entry.value
        start, end = node.entries[0].start, node.entries[-1].value.end
        if isinstance(value, (dict, list)) and value and isinstance(self._writer, YamlWriter):
            return [self._new_block(entry, value, start, end)]
        written = self._writer.inline(value)
        if not begins_line(text, start):  # it begins next to its dash
            closing = self._newline if text[end - 1] == "\n" else ""
            return [Splice(start, end, written + closing)]
        after = self._after_key(entry)
        return [Splice(after, after, f" {written}"), Splice(line_start(text, start), line_end(text, end), "")]

    def _new_block(self, entry: Entry, value: Any, start: int, end: int) -> Splice:
        assert isinstance(self._writer, YamlWriter)
        text = self._text
        indent = column(text, start)
        at = start
        if begins_line(text, start):
            at = line_start(text, start)
            if isinstance(value, dict):  # a list below its key needs no indent, a mapping does
                indent = max(indent, column(text, entry.start) + 2 if entry.value.kind == "list" else 0)
        if text[end - 1] != "\n":  # a comment in its last line is removed with it
            end = _line_content_end(text, end)
        lines = list(self._writer.block(value))
        first = " " * (indent - column(text, at)) + lines[0]
        block = self._newline.join([first, *(" " * indent + line for line in lines[1:])])
        return Splice(at, end, block + (self._newline if text[end - 1] == "\n" else ""))

    def _replace_block_scalar(self, holder: Node, entry: Entry, value: Any) -> list[Splice]:
        text, node = self._text, entry.value
        header = _HEADER.match(text, node.start)
        if header is None:
            raise CannotSpliceError("its layout is not supported")
        body, end = line_end(text, header.end()), self._block_end(node)
        if isinstance(value, str) and node.style == "|" and not re.search(r"[0-9]", header.group()):
            indent = re.match(r"\s*?([ ]+)(?=\S)", text[body:end])
            block = literal(value, indent[1] if indent else " " * 2, self._newline)
            if block is not None:
                mark, _, lines = block.partition(self._newline)
                if not text[:end].endswith("\n"):
                    lines = lines.removesuffix(self._newline)
                return [Splice(node.start, header.end(), mark), Splice(body, end, lines)]
        return [Splice(node.start, header.end(), self._writer.inline(value)), Splice(body, end, "")]

    def _after_key(self, entry: Entry) -> int:
        """Offset for a value in the same line: after the colon, or the dash."""
        if (
            self._text[entry.start : entry.key_end] == "-"
            and self._text[entry.key_end : entry.key_end + 1].isspace()
        ):
            return entry.key_end
        colon = _COLON.match(self._text, entry.key_end)
        if colon is None:
            raise CannotSpliceError("its key has no colon")
        return colon.end()

    def _block_end(self, node: Node) -> int:
        """End of the last line of `node`. Blank lines after a block scalar belong to it only with `+`."""
        while node.entries and not node.inline:
            node = node.entries[-1].value
        header = _HEADER.match(self._text, node.start)
        if node.inline or header is None or "+" in header.group():
            return line_end(self._text, node.end)
        content = self._text[: node.end]
        blanks = _BLANKS.search(content, max(header.end(), line_start(content, header.end())))
        return line_end(self._text, len(content.rstrip())) if blanks else node.end

    def _new_line(self, end: int, indent: str, written: str) -> Splice:
        """A separate line at `end`: the start of a line, or the end of a text without a final newline."""
        if end and self._text[end - 1] != "\n":
            return Splice(end, end, f"{self._newline}{indent}{written}")
        return Splice(end, end, f"{indent}{written}{self._newline}")

    def _add_inline(self, holder: Node, written: str) -> list[Splice]:
        if not holder.entries:
            return [Splice(holder.start + 1, holder.start + 1, written)]
        last = holder.entries[-1]
        between = ", "
        if begins_line(self._text, last.start):
            between = f",{self._newline}{self._text[line_start(self._text, last.start) : last.start]}"
        return [Splice(last.value.end, last.value.end, between + written)]

    def _delete_inline(self, holder: Node, number: int) -> list[Splice]:
        text, entry = self._text, holder.entries[number]
        start, end = entry.start, entry.value.end
        splices = []
        filling = _FILLING.match(text, end)
        comma = end if filling is None else filling.end()
        if text[comma : comma + 1] == ",":
            if not text[end:comma].strip():
                end = comma + 1
            else:
                splices.append(Splice(comma, comma + 1, ""))
        elif number:
            before = holder.entries[number - 1].value.end
            found = _FILLING.match(text, before)
            at = before if found is None else found.end()
            if text[at + 1 : start].strip() == "" and "\n" not in text[at:start]:
                start = at
            else:
                splices.append(Splice(at, at + 1, ""))
        rest = _REST_OF_LINE.match(text, end)
        if rest is not None and begins_line(text, start):
            return [*splices, Splice(line_start(text, start), rest.end(), "")]
        if text[end : end + 1] == " " and start == entry.start:
            end += 1
        return [*splices, Splice(start, end, "")]


def _line_content_end(text: str, offset: int) -> int:
    """End of the line with `offset`, before its line ending."""
    end = line_end(text, offset)
    return offset + len(text[offset:end].rstrip("\r\n"))
