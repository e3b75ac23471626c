"""What is written as YAML is what YAML 1.2 reads again."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lehr.base.documents import load
from lehr.cli.output import yaml_text

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.from_regex(
    r"[-+]?[0-9.eExXo_:]{1,8}", fullmatch=True
)
files = st.lists(st.text("ab \t#:-", max_size=6), min_size=2, max_size=6).map("\n".join)
"""Texts of several lines, with blanks and tabs wherever these can be."""

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=200)
@given(st.dictionaries(texts, values, min_size=1, max_size=4))
@example({"a": "1e3", "b": "0o17", "c": "no", "d": "2001-01-01", "e": "~", "f": "1_000", "1e3": "x"})
@example(
    {
        "a": "one\r\ntwo\n",
        "b": "  leading\n",
        "c": "\n\n",
        "d": "tab\there\n",
        "e": "end \nx",
        "f": "\u2028\n",
    }
)
def test_a_value_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    loaded = load("x.yaml", yaml_text(value).encode())
    assert not loaded.diagnostics
    assert [document.value for document in loaded.documents] == [value]


@settings(max_examples=300)
@given(files)
@example("\tfirst\nx")
@example("\n\n  \n\tx\n\n")
@example(" \n\t\n")
@example("server {\n\tlisten 80; \n}\n")
def test_a_text_of_several_lines_is_one_block_wherever_yaml_has_one(text: str) -> None:
    value = {"id": "a", "payload": {"content": text, "list": [text, {"x": text}]}}
    written = yaml_text(value)
    [document] = load("x.yaml", written.encode()).documents
    assert document.value == value
    if text.strip("\n"):
        assert "\n  content: |" in written
        assert '"' not in written
