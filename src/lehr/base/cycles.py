"""Cycles in graphs, and parts whose nodes all lead to each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def shortest_cycle(start: Node, ahead: Callable[[Node], Iterable[Node]]) -> tuple[Node, ...]:
    """A shortest path from `start` back to it, both included; empty if there is none.

    Args:
        ahead: the successors of a node.
    """
    came_from: dict[Node, Node] = {}
    queue = [start]
    for node in queue:
        for target in ahead(node):
            if target not in came_from:
                came_from[target] = node
                queue.append(target)
        if start in came_from:
            break
    else:
        return ()
    way = [start, came_from[start]]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(way[::-1])


def components(nodes: Iterable[Node], ahead: Callable[[Node], Iterable[Node]]) -> Iterator[list[Node]]:
    """The strongly connected parts of a graph, each after all parts that it leads to. Takes linear time.

    Args:
        nodes: every node of the graph.
        ahead: the successors of a node; called once for each.
    """
    found: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    done: set[Node] = set()
    for start in nodes:
        if start in found:
            continue
        found[start] = low[start] = len(found)
        stack.append(start)
        path = [(start, iter(ahead(start)))]
        while path:
            node, rest = path[-1]
            for target in rest:
                if target not in found:
                    found[target] = low[target] = len(found)
                    stack.append(target)
                    path.append((target, iter(ahead(target))))
                    break
                if target not in done:
                    low[node] = min(low[node], found[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == found[node]:
                    part = [stack.pop()]
                    while part[-1] != node:
                        part.append(stack.pop())
                    done.update(part)
                    yield part
