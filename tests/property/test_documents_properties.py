"""Loading never raises, and what it lets through is what others would read."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

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


def assert_sound(path: str, content: bytes) -> None:
    documents = load(path, content)
    for document in documents.documents:
        json.dumps(document.value, allow_nan=False).encode()
        for pointer in pointers(document.value):
            assert document.position(pointer).line >= 1
    for item in documents.diagnostics:
        assert item.code.startswith("DOC")
        assert item.at is not None
    if path.endswith((".json", ".toml")):
        assert len(documents.documents) == (0 if documents.diagnostics else 1)


@given(paths, st.binary(max_size=200))
def test_arbitrary_bytes_never_raise(path: str, content: bytes) -> None:
    assert_sound(path, content)


@settings(max_examples=300)
@given(paths, fragments)
def test_arbitrary_fragments_of_syntax_never_raise(path: str, text: str) -> None:
    assert_sound(path, text.encode())


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
