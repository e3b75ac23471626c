"""The picture of a neighbourhood: nothing overlaps, layers follow references, and every line is also text."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.page.graph_view import (
    MOST_LINES,
    MOST_ROWS,
    NODE_HEIGHT,
    NODE_WIDTH,
    GraphView,
    Layout,
    graph_view,
    layout,
    shortened,
)
from lehr.page.rendering import render
from tests.unit.page.test_rollout_screens import HOSTILE, NOW, text_of

COMMON = {
    "partition": "shop",
    "current": "assets",
    "title": "",
    "navigation": (),
    "static": {"lehr.css": "/a.css", "lehr.js": "/a.js", "lehr.svg": "/a.svg"},
    "node_width": NODE_WIDTH,
    "node_height": NODE_HEIGHT,
    "most_listed": 10,
}


def node(id: str, hops: int = 1, **changes: Any) -> dict[str, Any]:
    found = {"type": "lehr.File", "status": "Converged", "reason": "AsIntended", "message": "", "hops": hops}
    return {"id": id, **found, **changes}


def edge(source: str, target: str, goes_first: bool = True, *path: str) -> dict[str, Any]:
    where = list(path or ("/payload/on",))
    return {"source": source, "target": target, "path": where, "goes_first": goes_first}


def answer(nodes: list[dict[str, Any]], *edges: dict[str, Any], cut: bool = False) -> dict[str, Any]:
    return {"around": nodes[0]["id"], "hops": 1, "nodes": nodes, "edges": list(edges), "cut": cut}


def html_of(found: GraphView) -> str:
    return render("graph.html", NOW, {**COMMON, "shown": found})


def free_of_overlaps(found: Layout) -> None:
    for (_, one), (_, other) in itertools.combinations(found.places.items(), 2):
        assert abs(one.x - other.x) >= NODE_WIDTH or abs(one.y - other.y) >= NODE_HEIGHT
    for place in found.places.values():
        assert 0 <= place.x <= found.width - NODE_WIDTH
        assert 0 <= place.y <= found.height - NODE_HEIGHT


# --- places -------------------------------------------------------------------------------


def test_what_an_asset_refers_to_is_to_its_left_and_its_referrers_to_its_right() -> None:
    found = layout({"b": 0, "a": 1, "c": 1, "d": 2}, [("b", "a"), ("c", "b"), ("d", "c")])
    assert [id for id, _ in sorted(found.places.items(), key=lambda item: item[1].x)] == ["a", "b", "c", "d"]
    assert len({place.y for place in found.places.values()}) == 1


def test_another_referrer_of_the_same_target_is_in_the_same_layer() -> None:
    places = layout({"web": 0, "db": 1, "shop": 2}, [("web", "db"), ("shop", "db")]).places
    assert places["shop"].x == places["web"].x
    assert places["shop"].y > places["web"].y


def test_a_cycle_has_a_line_in_each_direction() -> None:
    found = graph_view(answer([node("a", 0), node("b")], edge("a", "b"), edge("b", "a")))
    assert len({line.path for line in found.lines}) == 2
    assert [line.words.split(" (")[0] for line in found.lines] == ["a depends on b", "b depends on a"]


def test_a_longer_cycle_and_an_asset_that_refers_to_its_own_id_are_drawn() -> None:
    ring = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "a")]
    found = layout({"a": 0, "b": 1, "c": 1}, ring)
    free_of_overlaps(found)
    assert found.places["b"].x < found.places["a"].x < found.places["c"].x
    shown = graph_view(answer([node("a", 0)], edge("a", "a")))
    begin, end = shown.lines[0].path.split(" C ")
    assert begin.removeprefix("M ") != " ".join(end.split()[-2:])


def test_a_single_asset_is_a_picture() -> None:
    found = layout({"a": 0}, [])
    assert list(found.places) == ["a"]
    free_of_overlaps(found)
    assert "0 assets around a" in text_of_graph(answer([node("a", 0)]))


def test_a_layer_of_many_assets_has_several_columns() -> None:
    ids = [f"r{number:03}" for number in range(99)]
    found = layout({"hub": 0, **dict.fromkeys(ids, 1)}, [(id, "hub") for id in ids])
    free_of_overlaps(found)
    columns = [place.x for id, place in found.places.items() if id != "hub"]
    assert max(map(columns.count, columns)) <= MOST_ROWS
    assert min(columns) > found.places["hub"].x
    assert found.height < (MOST_ROWS + 1) * 60


def test_an_asset_whose_references_are_unknown_has_a_place() -> None:
    free_of_overlaps(layout({"a": 0, "b": 1, "c": 2}, []))


@given(st.data())
def test_no_two_assets_overlap_and_the_same_graph_has_the_same_picture(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 100))
    ids = [f"n{number}/x" for number in range(count)]
    hops = dict(zip(ids, sorted([0, *data.draw(st.lists(st.integers(1, 5), max_size=99))]), strict=False))
    one = st.sampled_from(sorted(hops))
    pairs = data.draw(st.lists(st.tuples(one, one), max_size=200))
    found = layout(hops, pairs)
    assert found.places.keys() == hops.keys()
    free_of_overlaps(found)
    assert layout(hops, pairs[::-1]) == found


# --- texts --------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["a", "x" * 25, "x" * 26, "shop/web/" + "y" * 191])
def test_a_long_id_keeps_its_beginning_and_its_end(id: str) -> None:
    short = shortened(id)
    assert len(short) <= 25
    assert short == id or (id.startswith(short.split("…")[0]) and id.endswith(short.split("…")[1]))


def text_of_graph(found: dict[str, Any]) -> str:
    html = html_of(graph_view(found)).replace('role="group"', 'role="img"')
    return text_of(html)


def test_every_reference_and_status_is_in_the_table() -> None:
    waiting = node("web/1", 0, status="Waiting", reason="DependencyDiffers")
    text = text_of_graph(answer([waiting, node("db")], edge("web/1", "db", True, "/payload/db")))
    assert "1 asset around web/1" in text
    assert "web/1 lehr.File ▲ Waiting DependencyDiffers 0 db" in text
    assert "db lehr.File ● Converged AsIntended 1 web/1" in text
    assert "web/1 depends on db (/payload/db)" in text


@pytest.mark.parametrize(
    ("status", "reason", "state"),
    [
        ("Converged", "AsIntended", "Converged"),
        ("Converged", "AwaitingRelease", "Converged AwaitingRelease"),
        ("Pushing", "Pushing", "Pushing"),
        ("Waiting", "AReasonThatDoesNotFitIntoTheNode", "Waiting"),
        ("NoTurnYet", "", "NoTurnYet"),
    ],
)
def test_the_picture_has_the_reason_if_it_adds_something_and_fits(
    status: str, reason: str, state: str
) -> None:
    found = graph_view(answer([node("a", 0, status=status, reason=reason)]))
    assert found.nodes[0].state == state
    assert reason in found.nodes[0].words


def test_an_asset_that_intent_does_not_have_is_no_link() -> None:
    gone = node("gone", type="", status="", reason="")
    html = html_of(graph_view(answer([node("a", 0), gone], edge("a", "gone", False))))
    assert "/p/shop/assets/gone" not in html
    assert "/p/shop/graph/gone" not in html
    assert "■ not in intent" in html
    assert 'class="edge other"' in html


def test_a_graph_that_is_cut_says_so() -> None:
    assert "only the nearest 1 are shown" in text_of_graph(answer([node("a", 0)], cut=True))


def test_of_very_many_references_some_are_drawn_and_named_and_all_are_counted() -> None:
    ids = [f"n{number:02}" for number in range(40)]
    edges = [edge(one, other) for one in ids for other in ids]
    found = graph_view(answer([node("n00", 0), *map(node, ids[1:])], *edges))
    assert len(found.lines) == MOST_LINES
    assert found.undrawn == 1600 - MOST_LINES
    html = html_of(found)
    assert "1,200 of the references are not drawn" in html
    assert "and 30 more" in html


def test_no_text_of_a_graph_can_do_anything() -> None:
    hostile = node(HOSTILE, 0, type=HOSTILE, status=HOSTILE, reason=HOSTILE)
    html = html_of(graph_view(answer([hostile, node("b")], edge(HOSTILE, "b", True, *[HOSTILE] * 9))))
    text_of(html.replace('role="group"', 'role="img"'))
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "\u202e" not in html
    assert "\u0007" not in html
