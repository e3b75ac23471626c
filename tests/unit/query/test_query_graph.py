"""What generators read and make, and cycles among assets."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lehr.base.diagnostics import Position
from lehr.cli.graph import DRAWINGS, generators_drawing, references_drawing, references_text
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.provenance import Annotated, DeclaredGenerator, Derivation, Reads
from lehr.query.graph import Edge, ReferenceGraph, cycles, generator_graph, reference_graph
from lehr.testing.samples import registry


def asset(
    id: str, type: str, by: Derivation | None = None, *, owner: Derivation | None = None, **payload: object
) -> Asset:
    annotated = () if owner is None else (Annotated("lehr.Owner", owner),)
    return make_asset(AssetId(id), type, payload, {}, Position("assets/a.yaml", 1), by, annotated)


def by(generator: str, reads: Reads, of: str, item: str = "", line: int = 5) -> Derivation:
    return Derivation(generator, line, reads, of, item)


def edge(source: str, target: str) -> Edge:
    return Edge(AssetId(source), AssetId(target), ("/x",), goes_first=True)


def test_generators_are_counted_and_ordered_by_what_they_read() -> None:
    owner = by("g/a.py:owners", "asset", "sample.Route", "r")
    assets = [
        asset("plain", "sample.Service"),
        asset("s", "sample.Service", by("g/z.py:services", "file", "in/*.yaml", "in/s.yaml")),
        asset("t", "sample.Service", by("g/z.py:services", "file", "in/*.yaml", "in/s.yaml", 4)),
        asset("r", "sample.Route", by("g/b.py:routes", "asset", "sample.Service", "s"), owner=owner),
        asset("sum", "sample.Policy", by("g/c.py:sum", "assets", "sample.Route")),
    ]
    found = generator_graph(assets)
    assert (found.files, found.declares) == (1, {"sample.Service": 1})
    assert [node.name for node in found.generators] == [
        "g/z.py:services",
        "g/b.py:routes",
        "g/a.py:owners",
        "g/c.py:sum",
    ]
    services, routes, owners, total = found.generators
    assert (services.line, services.inputs, services.makes) == (4, 1, {"sample.Service": 2})
    assert (routes.after, owners.annotates, total.inputs) == (("g/z.py:services",), {"lehr.Owner": 1}, None)


def test_a_declared_generator_that_made_nothing_is_there() -> None:
    [idle] = generator_graph([], [DeclaredGenerator("g/a.py:f", 3, "file", "none/*")]).generators
    assert (idle.inputs, idle.makes, idle.line) == (0, {}, 3)


def test_references_of_selected_assets_lead_out_of_the_selection() -> None:
    assets = {
        item.id: item
        for item in (
            asset("r", "sample.Route", path="/", service="s"),
            asset("q", "sample.Route", path="/", service="gone"),
            asset("s", "sample.Service"),
        )
    }
    routes = [item for item in assets.values() if item.type == "sample.Route"]
    found = reference_graph(routes, assets.get, registry())
    assert found.assets == {"gone": "", "q": "sample.Route", "r": "sample.Route", "s": "sample.Service"}
    assert [(item.source, item.target) for item in found.edges] == [("q", "gone"), ("r", "s")]
    told = list(references_text(found))
    assert any("(missing)" in line for line in told)


def test_cycles_are_named() -> None:
    found = cycles([edge("a", "b"), edge("b", "c"), edge("c", "a"), edge("d", "a"), edge("x", "x")])
    assert found == [("a", "b", "c", "a"), ("x", "x")]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=15))
def test_every_cycle_is_one_and_there_is_one_if_there_is_any(pairs: list[tuple[str, str]]) -> None:
    found = cycles([edge(*pair) for pair in pairs])
    for cycle in found:
        assert cycle[0] == cycle[-1]
        assert all(step in pairs for step in itertools.pairwise(cycle))
    reached = set(pairs)
    for _ in range(6):
        reached |= {(one, last) for one, mid in reached for other, last in pairs if mid == other}
    assert bool(found) == any(one == last for one, last in reached)


def test_drawings_hold_nothing_that_ends_them() -> None:
    name = AssetId('a"b')
    found = ReferenceGraph({name: "t"}, (Edge(name, name, ("/x",), goes_first=False),))
    dot = "\n".join(DRAWINGS["dot"](*references_drawing(found)))
    assert '"a\\"b" -> "a\\"b" [label="refers to", style=dashed];' in dot
    mermaid = list(DRAWINGS["mermaid"](*references_drawing(found)))
    assert mermaid == ["flowchart LR", '  n0["a#quot;b<br/>t"]', '  n0 -.->|"refers to"| n0']


def test_a_drawing_leads_from_what_is_read_to_what_is_made() -> None:
    made = asset("s", "sample.Service", by("g/z.py:f", "files", "in/*.yaml"))
    nodes, arrows = generators_drawing(generator_graph([made]))
    assert set(nodes) == {"in/*.yaml", "g/z.py:f", "sample.Service"}
    assert [(arrow.source, arrow.target, arrow.label) for arrow in arrows] == [
        ("in/*.yaml", "g/z.py:f", "all"),
        ("g/z.py:f", "sample.Service", "1"),
    ]


def test_what_a_terminal_would_obey_is_not_passed_on() -> None:
    name = AssetId("a\x1b[2J")
    found = ReferenceGraph({name: ""}, (Edge(name, name, ("/x",), goes_first=True),), ((name, name),))
    shown = [*references_text(found), *DRAWINGS["dot"](*references_drawing(found))]
    assert not any("\x1b" in line for line in shown)
