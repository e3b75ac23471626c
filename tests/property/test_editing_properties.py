"""Edits of random files: only the value changes, and no ordinary layout is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lehr.base.documents import load
from lehr.editing.changes import Add, Delete, EditError, Replace
from lehr.editing.file_edit import apply
from lehr.editing.partial_changes import same

FILE = "random.yaml"
_COMMENT = re.compile(r"#c\d+")

_words = st.sampled_from(
    [
        "web",
        "no",
        "1",
        "1.0",
        "a b",
        "x: y",
        "- z",
        "#c",
        "it's",
        'say "x"',
        "",
        " lead",
        "é",
        "a\nb\n",
        "a\n\n b",
        "null",
        "~",
        "2024-01-01",
        "0x1f",
        "[a",
        "{",
        "a,b",
        "*x",
        "&y",
        "!t",
        "%",
        "@",
        "`",
        "tab\there",
        "|",
        ">",
    ]
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), _words) | st.floats(
    allow_nan=False, allow_infinity=False
)
keys = st.sampled_from(["a", "b", "c.d", "on", "k 1", "1", "lehr.Labels", "é", "x/y", "-"])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


class Writer:
    """Writes a value as people might, in layouts that are drawn."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._comments = 0

    def file(self, value: Any) -> str:
        lines = self._block(value, 0)
        newline = self._draw(st.sampled_from(["\n", "\n", "\r\n"]))
        text = newline.join(lines)
        unended = self._chance(3) and same(load(FILE, text.encode()).documents[0].value, value)
        return text if unended else text + newline  # without it, a block of text ends otherwise

    def _block(self, value: Any, indent: int) -> list[str]:
        """Lines of a list or mapping that is not empty."""
        lines: list[str] = []
        for key, item in value.items() if isinstance(value, dict) else [(None, item) for item in value]:
            lines += self._noise(indent)
            head = " " * indent + ("-" if key is None else f"{self._key(key)}:")
            lines += self._entry(head, item, indent, compact=key is None)
        return lines

    def _entry(self, head: str, item: Any, indent: int, *, compact: bool) -> list[str]:
        if isinstance(item, (dict, list)) and item and self._chance():
            inner = indent + self._draw(st.sampled_from([2, 3, 4]))
            if isinstance(item, list) and not compact and self._chance():
                inner = indent
            lines = self._block(item, inner)
            if compact and self._chance() and not lines[0].lstrip().startswith("#") and lines[0].strip():
                return [head + " " * (inner - indent - 1) + lines[0][inner:], *lines[1:]]
            return [head + self._comment(), *lines]
        if isinstance(item, str) and re.fullmatch(r"(?!\s)[^\n]+\n(?:[^\n]+\n)+", item) and self._chance():
            body = item.split("\n")[:-1]
            return [f"{head} |{self._comment()}", *(" " * (indent + 2) + line for line in body)]
        if item is None and self._chance():
            return [head + self._comment()]
        return [f"{head} {self._inline(item)}{self._comment()}"]

    def _inline(self, item: Any) -> str:
        space = self._draw(st.sampled_from(["", " "]))
        if isinstance(item, dict):
            inner = f",{space or ' '}".join(
                f"{self._key(key)}: {self._inline(value)}" for key, value in item.items()
            )
            return f"{{{space}{inner}{space}}}"
        if isinstance(item, list):
            return f"[{space}{f',{space}'.join(map(self._inline, item))}{space}]"
        if isinstance(item, str) and re.fullmatch(r"[a-z]{3}", item) and item != "null" and self._chance():
            return item
        if isinstance(item, str) and item.isprintable() and self._chance():
            return "'" + item.replace("'", "''") + "'"
        return json.dumps(item, ensure_ascii=self._chance())

    def _key(self, key: str) -> str:
        return key if re.fullmatch(r"[a-z.]+", key) and self._chance() else json.dumps(key)

    def _noise(self, indent: int) -> list[str]:
        if self._chance(4):
            self._comments += 1
            return self._draw(
                st.sampled_from([[""], [" " * indent + f"#c{self._comments}"], [f"#c{self._comments}"]])
            )
        return []

    def _comment(self) -> str:
        if not self._chance(3):
            return ""
        self._comments += 1
        return self._draw(st.sampled_from([" ", "   "])) + f"#c{self._comments}"

    def _chance(self, of: int = 2) -> bool:
        return self._draw(st.integers(1, of)) == of


def places(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    """Every value in `value`, with its pointer."""
    found = [(pointer, value)]
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            found += places(item, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


def at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


@st.composite
def files(draw: st.DrawFn) -> tuple[str, Any]:
    """A file, and what it means."""
    value = draw(
        st.dictionaries(keys, values, min_size=1, max_size=4) | st.lists(values, min_size=1, max_size=3)
    )
    text = Writer(draw).file(value)
    loaded = load(FILE, text.encode())
    assert not loaded.diagnostics, (text, loaded.diagnostics)
    assert same(loaded.documents[0].value, value), text
    return text, value


def changed_lines(before: str, after: str) -> tuple[list[str], list[str], int]:
    """The lines between the common first and last lines, and how many are common at the start."""
    old, new, start = before.split("\n"), after.split("\n"), 0
    while old and new and old[0] == new[0]:
        del old[0], new[0]
        start += 1
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return old, new, start


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


@settings(max_examples=150)
@given(file=files(), value=scalars, data=st.data())
def test_a_scalar_that_is_replaced_changes_its_line_alone(
    file: tuple[str, Any], value: Any, data: st.DataObject
) -> None:
    text, whole = file
    scalar = [(pointer, item) for pointer, item in places(whole) if not isinstance(item, (dict, list))]
    if not scalar:
        return
    pointer, before = data.draw(st.sampled_from(scalar))
    after = apply(text.encode(), Replace(file=FILE, path=pointer, value=value, retype=True)).content.decode()
    wanted = copied(whole)
    holder, _, last = pointer.rpartition("/")
    inside = at(wanted, holder)
    inside[int(last) if isinstance(inside, list) else last.replace("~1", "/").replace("~0", "~")] = value
    assert same(load(FILE, after.encode()).documents[0].value, wanted)
    assert _COMMENT.findall(after) == _COMMENT.findall(text)
    old, new, _ = changed_lines(text, after)
    if not (isinstance(before, str) and "\n" in before):
        assert len(old) <= 1
        assert len(new) <= 1


@settings(max_examples=150)
@given(file=files(), value=values, data=st.data())
def test_any_value_can_be_replaced_by_any_other(
    file: tuple[str, Any], value: Any, data: st.DataObject
) -> None:
    text, whole = file
    pointer, _ = data.draw(st.sampled_from(places(whole)[1:] or [("", None)]))
    if not pointer:
        return
    after = apply(text.encode(), Replace(file=FILE, path=pointer, value=value, retype=True)).content.decode()
    assert same(at(load(FILE, after.encode()).documents[0].value, pointer), value)
    newlines = "\r\n" if "\r\n" in text else "\n"
    assert "\n" not in after.replace(newlines, "")


@settings(max_examples=150)
@given(file=files(), value=values, data=st.data())
def test_what_is_added_and_deleted_again_leaves_every_comment(
    file: tuple[str, Any], value: Any, data: st.DataObject
) -> None:
    text, whole = file
    pointer, holder = data.draw(
        st.sampled_from([item for item in places(whole) if isinstance(item[1], (dict, list))])
    )
    new = f"{pointer}/-" if isinstance(holder, list) else f"{pointer}/new"
    added = apply(text.encode(), Add(file=FILE, path=new, value=value)).content
    key = f"{pointer}/{len(holder)}" if isinstance(holder, list) else new
    assert same(at(load(FILE, added).documents[0].value, key), value)
    again = apply(added, Delete(file=FILE, path=key, expect=value)).content
    assert same(load(FILE, again).documents[0].value, whole)
    assert _COMMENT.findall(again.decode()) == _COMMENT.findall(text)


@settings(max_examples=150)
@given(file=files(), data=st.data())
def test_what_is_deleted_is_all_that_goes(file: tuple[str, Any], data: st.DataObject) -> None:
    text, whole = file
    pointer, _ = data.draw(st.sampled_from(places(whole)[1:] or [("", None)]))
    if not pointer:
        return
    after = apply(text.encode(), Delete(file=FILE, path=pointer)).content
    wanted = copied(whole)
    holder, _, last = pointer.rpartition("/")
    inside = at(wanted, holder)
    del inside[int(last) if isinstance(inside, list) else last.replace("~1", "/").replace("~0", "~")]
    assert same(load(FILE, after).documents[0].value, wanted)


@settings(max_examples=200)
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode), path=st.text(max_size=12))
def test_no_file_and_no_path_break_it(content: bytes, path: str) -> None:
    for name in ("a.yaml", "a.json", "a.toml"):
        for change in (
            Replace(file=name, path=path, value=1, retype=True),
            Add(file=name, path=path, value="x"),
            Delete(file=name, path=path),
        ):
            try:
                applied = apply(content, change)
            except EditError:
                continue
            else:
                assert applied.before is msgspec.UNSET or applied.content != content or applied.before == 1
