"""The order of generators follows from what they read and make."""

from __future__ import annotations

from lehr.generate.engine.schedule import Generator, in_order
from lehr.generate.sandbox.authors import FoundGenerator
from lehr.model.types import AssetType, Registry
from lehr.sdk.generator import Declaration, Reads
from lehr.testing.samples import Policy

REGISTRY = Registry(AssetType(name, Policy) for name in ("A", "B", "C"))


def over_assets(name: str, reads: str, *makes: str) -> Generator:
    return Generator("g.py", FoundGenerator(name, Declaration(Reads.ASSET, reads, makes), 1))


def over_files(name: str, pattern: str = "*") -> Generator:
    return Generator("g.py", FoundGenerator(name, Declaration(Reads.FILE, pattern), 1))


def test_each_runs_after_those_that_make_what_it_reads() -> None:
    generators = [
        over_assets("a", "C"),
        over_assets("b", "B", "C"),
        over_assets("c", "A", "B"),
        over_files("z"),
    ]
    ordered, diagnostics = in_order(generators, REGISTRY)
    assert [item.found.name for item in ordered] == ["z", "c", "b", "a"]
    assert diagnostics == []


def test_a_cycle_is_named_and_nothing_in_it_runs() -> None:
    generators = [over_files("z"), over_assets("a", "A", "B"), over_assets("b", "B", "A")]
    ordered, (found,) = in_order(generators, REGISTRY)
    assert [item.found.name for item in ordered] == ["z"]
    assert found.code == "GEN031"
    assert "g.py:a" in found.what
    assert "g.py:b" in found.what


def test_a_type_that_nobody_registered_comes_with_advice() -> None:
    ordered, found = in_order([over_assets("a", "D", "E")], REGISTRY)
    assert ordered == []
    assert [item.code for item in found] == ["GEN030", "GEN030"]
    assert "known types: A, B, C" in found[0].fix


def test_what_a_selector_may_select_is_made_first() -> None:
    generators = [
        over_assets("a", "type=[BC],label:tier=web", "A"),
        over_assets("b", "A", "C"),
    ]
    _, (found,) = in_order(generators, REGISTRY)
    assert found.code == "GEN031"
    ordered, problems = in_order([over_assets("a", "label:tier=web"), over_assets("b", "A", "C")], REGISTRY)
    assert [item.found.name for item in ordered] == ["b", "a"]
    assert problems == []


def test_one_that_may_read_what_it_makes_is_a_cycle() -> None:
    _, (found,) = in_order([over_assets("a", "id=x*", "A")], REGISTRY)
    assert found.code == "GEN031"


def test_a_pattern_of_types_that_matches_none_is_refused() -> None:
    ordered, (found,) = in_order([over_assets("a", "type=X*,type=[AB]")], REGISTRY)
    assert ordered == []
    assert "X*" in found.what
