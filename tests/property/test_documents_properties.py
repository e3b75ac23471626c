"""Loading never raises, and what it lets through is what others would read."""

from __future__ import annotations

import json
import sys
from types import FrameType
from typing import Any

import msgspec
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lehr.base.diagnostics import Position
from lehr.base.digest import canonical
from lehr.base.documents import SUFFIXES, load
from lehr.base.documents.document import Document

paths = st.sampled_from(sorted("a" + suffix for suffix in SUFFIXES))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)
_SYNTAX = (
    "[ ] { } : , - ? & * ! | > ' \" % @ ` # = . 0 a << --- ... \"\"\" ''' [[ ]] &a *a !!str "
    "\\u \\ud800 1e999 0x nan null 1979-05-27"
)
fragments = st.lists(
    st.sampled_from([*_SYNTAX.split(" "), " ", "  ", "\n", "\t", "\r\n", "- ", ": ", "? ", "a = "]),
    max_size=30,
).map("".join)


def pointers(value: Any, prefix: str = "") -> list[str]:
    found = [prefix]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += pointers(inner, f"{prefix}/{key.replace('~', '~0').replace('/', '~1')}")
    if isinstance(value, list):
        for index, inner in enumerate(value):
            found += pointers(inner, f"{prefix}/{index}")
    return found


def assert_inside(content: bytes, position: Position) -> None:
    """There is such a line, and it is so long: at most the place right behind it is meant."""
    lines = content.split(b"\n")
    assert 1 <= position.line <= len(lines), position
    line = lines[position.line - 1].decode(errors="replace")
    assert 1 <= position.column <= len(line) + 1, position


def assert_sound(path: str, content: bytes) -> None:
    documents = load(path, content)
    for document in documents.documents:
        assert msgspec.json.decode(canonical(document.value)) == document.value
        json.dumps(document.value, allow_nan=False).encode()
        for pointer in pointers(document.value):
            assert_inside(content, document.position(pointer))
    for item in documents.diagnostics:
        assert item.code.startswith("DOC")
        assert item.what
        assert item.fix
        assert len(item.what) + len(item.why) + len(item.fix) < 500
        assert item.at is not None
        assert_inside(content, item.at)
    if path.endswith((".json", ".toml")):
        assert len(documents.documents) == (0 if documents.diagnostics else 1)


@given(paths, st.binary(max_size=200))
def test_arbitrary_bytes_never_raise(path: str, content: bytes) -> None:
    assert_sound(path, content)


@settings(max_examples=300)
@given(paths, fragments)
def test_arbitrary_fragments_of_syntax_never_raise(path: str, text: str) -> None:
    assert_sound(path, text.encode())


@settings(max_examples=300)
@given(paths, st.lists(fragments | st.binary(max_size=4).map(bytes.hex) | st.text(max_size=4), max_size=20))
def test_lines_of_anything_never_raise(path: str, lines: list[str]) -> None:
    assert_sound(path, "\n".join(lines).encode(errors="surrogatepass"))


@settings(max_examples=200)
@given(values, st.sampled_from([".json", ".yaml"]), st.data())
def test_a_sound_file_that_was_cut_or_changed_somewhere_never_raises(
    value: Any, suffix: str, data: st.DataObject
) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False).encode()
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 4))
    put = data.draw(st.sampled_from([b"", b"\0", b"\r", b"\n", b"\xff", b'"', b"*a", b"&a ", b"\t", b": "]))
    assert_sound("a" + suffix, text[:at] + put + text[at + gone :])


class Yaml11(yaml.CSafeLoader):
    """PyYAML's safe loader, where YAML 1.1 and 1.2 agree: scalars are what 1.2 takes them for."""


Yaml11.yaml_implicit_resolvers = {}


@settings(max_examples=300)
@given(fragments)
def test_what_loads_is_what_pyyaml_loads(text: str) -> None:
    """But for the meaning of plain scalars, which the two versions see differently."""
    documents = load("a.yaml", text.encode())
    if documents.diagnostics:
        return
    loaded = list(yaml.load_all(text.encode(), Loader=Yaml11))
    assert [shape(item.value) for item in documents.documents] == [shape(item) for item in loaded]


def shape(value: Any) -> Any:
    """A value in which all scalars are the same."""
    if isinstance(value, dict):
        return {str(key): shape(inner) for key, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else "scalar"


@settings(max_examples=30)
@given(paths, fragments, st.integers(1, 4))
def test_work_grows_with_the_size_of_a_file_and_not_faster(path: str, text: str, times: int) -> None:
    """Counted in calls of functions, not in seconds: of twice the text, no more than four times as many."""
    once = max(calls(path, text * 20 * times), 2_000)
    assert calls(path, text * 40 * times) <= 4 * once


def calls(path: str, text: str) -> int:
    """How many functions are called to load `text`, and to find a place in it."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        for document in load(path, text.encode()).documents[:1]:
            document.position("/0")
    finally:
        sys.setprofile(before)
    return count


@given(values, st.sampled_from([None, 2]))
def test_json_reads_as_the_standard_library_does(value: Any, indent: int | None) -> None:
    (document,) = load("a.json", json.dumps(value, indent=indent).encode()).documents
    assert document.value == value


@given(values)
def test_json_positions_lead_to_the_values(value: Any) -> None:
    text = json.dumps(value, indent=1)
    (document,) = load("a.json", text.encode()).documents
    lines = text.split("\n")
    seen = [value_at(document, pointer) for pointer in pointers(value)]
    for position, key in seen:
        assert lines[position[0] - 1][position[1] - 1 :].startswith(key)


def value_at(document: Document, pointer: str) -> tuple[tuple[int, int], str]:
    """Line and column of `pointer`, and the key that must stand there if it is an entry."""
    value, key = document.value, ""
    for part in pointer.split("/")[1:]:
        if isinstance(value, list):
            value, key = value[int(part)], ""
        else:
            name = part.replace("~1", "/").replace("~0", "~")
            value, key = value[name], json.dumps(name)
    position = document.position(pointer)
    return (position.line, position.column), key


@given(values)
def test_what_pyyaml_writes_is_read_back(value: Any) -> None:
    text = yaml.dump(value, Dumper=yaml.CSafeDumper, default_style='"' if isinstance(value, str) else None)
    documents = load("a.yaml", text.encode())
    if documents.diagnostics:  # a float of YAML 1.1 or a key that YAML 1.2 takes for a number
        assert {item.code for item in documents.diagnostics} <= {"DOC003", "DOC006", "DOC010"}
        return
    assert same(documents.documents[0].value, value)


def same(read: Any, written: Any) -> bool:
    """Equal, but for strings that only YAML 1.2 takes for numbers (`1e5`, `0o7`)."""
    if isinstance(written, dict):
        return isinstance(read, dict) and all(same(read[key], inner) for key, inner in written.items())
    if isinstance(written, list):
        return len(read) == len(written) and all(map(same, read, written))
    return read == written or (isinstance(written, str) and isinstance(read, (int, float)))
