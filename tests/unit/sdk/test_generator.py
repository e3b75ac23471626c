"""What authors of generators are given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lehr.sdk.generator import (
    Declaration,
    DeclaredAsset,
    Reads,
    SourceFile,
    UnreadableFileError,
    asset,
    declaration,
    for_all_assets,
    for_each_asset,
    for_each_file,
)


def test_a_decorated_generator_can_be_called_and_tested_like_any_function() -> None:
    @for_each_file("*.yaml")
    def generator(file: SourceFile) -> Iterator[DeclaredAsset]:
        yield asset(file.yaml()["id"], "T", {})

    assert list(generator(SourceFile("x.yaml", b"id: a"))) == [DeclaredAsset("a", "T", {})]
    assert declaration(generator) == Declaration(Reads.FILE, "*.yaml")
    assert declaration(len) is None


def test_what_a_generator_makes_may_be_one_type_or_several() -> None:
    @for_each_asset("A", makes="BC")
    def one(_: object) -> Iterator[DeclaredAsset]:
        yield from ()

    @for_all_assets("A", makes=["B", "C"])
    def several(_: object) -> Iterator[DeclaredAsset]:
        yield from ()

    assert [(declaration(item) or Declaration(Reads.FILE, "")).makes for item in (one, several)] == [
        ("BC",),
        ("B", "C"),
    ]


def test_a_source_file_is_read_in_the_format_that_is_asked_for() -> None:
    assert SourceFile("x", b"on: no").yaml() == {"on": "no"}
    assert SourceFile("x.conf", b'{"a": 1}').json() == {"a": 1}
    assert SourceFile("x", b"a = 1").toml() == {"a": 1}
    assert SourceFile("x", b"a\n---\nb").documents() == ["a", "b"]
    assert SourceFile("x", "ä".encode()).text() == "ä"
    assert SourceFile("x", b"\xff").bytes() == b"\xff"


def test_what_cannot_be_read_carries_its_diagnostics() -> None:
    with pytest.raises(UnreadableFileError) as caught:
        SourceFile("x.yaml", b"a: 1\na: 2").yaml()
    assert [(item.at.line if item.at else 0) for item in caught.value.diagnostics] == [2]
    with pytest.raises(ValueError, match="2 documents"):
        SourceFile("x.yaml", b"a\n---\nb").yaml()
