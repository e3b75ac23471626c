"""Cycles in graphs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
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
