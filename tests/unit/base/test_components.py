"""Strongly connected parts of graphs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lehr.base.cycles import components

graphs = st.integers(1, 12).flatmap(
    lambda size: st.fixed_dictionaries(
        {node: st.lists(st.integers(0, size - 1), max_size=4) for node in range(size)}
    )
)


def reached(graph: dict[int, list[int]], start: int) -> set[int]:
    found = {start}
    ahead = [start]
    while ahead:
        for target in graph[ahead.pop()]:
            if target not in found:
                found.add(target)
                ahead.append(target)
    return found


@given(graphs)
def test_parts_are_those_whose_nodes_reach_each_other(graph: dict[int, list[int]]) -> None:
    reach = {node: reached(graph, node) for node in graph}
    expected = {
        frozenset(other for other in graph if other in reach[node] and node in reach[other]) for node in graph
    }
    parts = list(components(graph, graph.__getitem__))
    assert {frozenset(part) for part in parts} == expected
    assert sum(map(len, parts)) == len(graph)
    met: set[int] = set()
    for part in parts:
        met.update(part)
        assert reach[part[0]] <= met, "what a part leads to comes before it"


def test_a_long_chain_is_walked_without_recursion() -> None:
    size = 50_000
    parts = list(components(range(size), lambda node: [node + 1] if node + 1 < size else []))
    assert [node for [node] in parts] == list(range(size))[::-1]
