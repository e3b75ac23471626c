"""References are found in any field, list or map, in types of every kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from lehr.model.references import (
    AnyReference,
    Mention,
    Reference,
    external_leaf,
    extractor,
    patterns,
    reference_leaf,
    reference_mark,
    values_at,
)
from lehr.model.types import External

Team = Annotated[str, Reference(("shop.Team",))]


class Near(msgspec.Struct, frozen=True, tag="near"):
    at: AnyReference


class Far(msgspec.Struct, frozen=True, tag="far"):
    to: Team
    at: str = ""


@dataclasses.dataclass(frozen=True)
class Plain:
    owner: Team


class Typed(TypedDict):
    owner: Team


class Tree(msgspec.Struct, frozen=True):
    owner: Team
    children: list[Tree] = []


class Silent(msgspec.Struct, frozen=True):
    text: str
    again: list[Silent] = []


class Everything(msgspec.Struct, frozen=True, rename="camel"):
    one_field: AnyReference | None = None
    many: tuple[AnyReference, ...] = ()
    pair: tuple[str, AnyReference] | None = None
    weights: dict[Team, int] = {}
    named: Mapping[str, Sequence[AnyReference]] = {}
    either: Near | Far | None = None
    plain: Plain | None = None
    typed: Typed | None = None


def found(kind: Any, value: Any) -> list[tuple[str, str]]:
    extract = extractor(kind, reference_leaf)
    mentions: list[Mention] = [] if extract is None else list(extract(value, ""))
    return [(item.path, item.target) for item in mentions]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"oneField": "a"}, [("/oneField", "a")]),
        ({"many": ["a", "b"]}, [("/many/0", "a"), ("/many/1", "b")]),
        ({"pair": ["a", "b"]}, [("/pair/1", "b")]),
        ({"weights": {"a/b": 1}}, [("/weights/a~1b", "a/b")]),
        ({"named": {"x": ["a"]}}, [("/named/x/0", "a")]),
        ({"either": {"type": "near", "at": "a"}}, [("/either/at", "a")]),
        ({"either": {"type": "far", "to": "a", "at": "no reference"}}, [("/either/to", "a")]),
        ({"plain": {"owner": "a"}}, [("/plain/owner", "a")]),
        ({"typed": {"owner": "a"}}, [("/typed/owner", "a")]),
        ({"oneField": None, "many": None, "unknown": "a"}, []),
    ],
)
def test_references_stand_in_fields_lists_maps_their_keys_and_either_of_several_forms(
    value: Any, expected: list[tuple[str, str]]
) -> None:
    assert found(Everything, value) == expected


def test_references_are_found_at_any_depth_of_a_type_that_holds_values_of_itself() -> None:
    tree = {"owner": "a", "children": [{"owner": "b", "children": [{"owner": "c"}]}]}
    assert found(Tree, tree) == [
        ("/owner", "a"),
        ("/children/0/owner", "b"),
        ("/children/0/children/0/owner", "c"),
    ]


def test_a_type_without_references_is_not_searched() -> None:
    assert extractor(Silent, reference_leaf) is None
    assert extractor(Plain, external_leaf) is None


def test_what_annotations_say_is_also_said_by_patterns() -> None:
    assert dict(patterns(Everything, reference_mark)) == {
        "/oneField": Reference(),
        "/many/*": Reference(),
        "/pair/1": Reference(),
        "/weights/#": Reference(("shop.Team",)),
        "/named/*/*": Reference(),
        "/either/at": Reference(),
        "/either/to": Reference(("shop.Team",)),
        "/plain/owner": Reference(("shop.Team",)),
        "/typed/owner": Reference(("shop.Team",)),
    }


def test_no_pattern_says_at_any_depth() -> None:
    with pytest.raises(RecursionError, match="Tree"):
        list(patterns(Tree, reference_mark))


def test_externals_have_patterns_too() -> None:
    class Release(msgspec.Struct):
        artefacts: list[External]

    def leaf(kind: Any) -> bool | None:
        return True if kind is External else None

    assert list(patterns(Release, leaf)) == [("/artefacts/*", True)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/a", [("/a", {"x/y": 1, "z": [2]})]),
        ("/a/*", [("/a/x~1y", 1), ("/a/z", [2])]),
        ("/a/#", [("/a/x~1y", "x/y"), ("/a/z", "z")]),
        ("/a/z/0", [("/a/z/0", 2)]),
        ("/a/x~1y", [("/a/x~1y", 1)]),
        ("/b/#", [("/b/#", "literally")]),
        ("/c/#", []),
    ],
)
def test_a_pattern_finds_values_and_keys(pattern: str, expected: list[tuple[str, Any]]) -> None:
    value = {"a": {"x/y": 1, "z": [2]}, "b": {"#": "literally"}, "c": [1]}
    assert list(values_at(value, pattern, "")) == expected
