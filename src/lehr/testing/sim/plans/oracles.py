"""Equalities with a fault and without: the end, and the way to it. Pure.

After Sieve (OSDI 2022). Its second oracle counts creates and deletes; here it is the values that
production of each asset went through, so that it also finds the right number of wrong updates. That
the same value is pushed again, as after a crash, changes nothing and does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lehr.model.decision import Condition
from lehr.testing.sim.plans.plan import Rest

Way = Mapping[str, Sequence[Any]]


def unlike(expected: Rest, found: Rest, conditions: Mapping[str, Condition]) -> list[str]:
    """How one state differs from another, one line for each thing."""
    lines = [
        *_each("production of", expected.production, found.production),
        *_each("the ledger of", expected.ledger, found.ledger),
        *_each("the condition of", expected.conditions, found.conditions, conditions),
    ]
    if expected.incarnation != found.incarnation:
        lines.append(f"the newest incarnation has digest {found.incarnation}, not {expected.incarnation}")
    lines += [f"an operation of {id} is still open" for id in sorted({*found.open} - {*expected.open})]
    return lines


def summary(way: Way) -> dict[str, Counter[str]]:
    """How often production of each asset was created, updated and removed."""
    return {id: Counter(_kinds(values)) for id, values in way.items()}


def differences(expected: Way, found: Way) -> list[str]:
    """How the way to the end differs: other creates, updates and removes, or other values."""
    lines = []
    before, after = summary(expected), summary(found)
    for id in sorted(expected.keys() | found.keys()):
        one, other = tuple(expected.get(id, ())), tuple(found.get(id, ()))
        if one == other:
            continue
        counts = before.get(id, Counter()) == after.get(id, Counter())
        difference = "went through other values" if counts else f"was {_counts_text(after.get(id))}"
        lines.append(f"on the way, {id} {difference}: {_values(other)}; without the fault: {_values(one)}")
    return lines


def strays(expected: Way, found: Way) -> list[str]:
    """Where a way that was shortened leaves `expected`: values that are not on it, or in another order."""
    lines = []
    for id, values in sorted(found.items()):
        whole = expected.get(id, ())
        ahead = iter(whole)
        if not all(value in ahead for value in values):
            lines.append(f"on the way, {id} went {_values(values)}; without the fault: {_values(whole)}")
    return lines


def _kinds(values: Sequence[Any]) -> Iterator[str]:
    before = None
    for value in values:
        yield "created" if before is None else "removed" if value is None else "updated"
        before = value


def _counts_text(counts: Counter[str] | None) -> str:
    found = [f"{kind} {count}x" for kind, count in sorted((counts or Counter()).items())]
    return ", ".join(found) or "never touched"


def _values(values: Sequence[Any]) -> str:
    return " > ".join("nothing" if value is None else _short(value) for value in values) or "nothing"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= 80 else f"{text[:40]}...{text[-37:]}"


def _each(
    what: str,
    expected: Mapping[str, Any],
    found: Mapping[str, Any],
    conditions: Mapping[str, Condition] | None = None,
) -> Iterator[str]:
    for id in sorted(expected.keys() | found.keys()):
        one, other = expected.get(id), found.get(id)
        if one == other:
            continue
        condition = None if conditions is None else conditions.get(id)
        more = "" if condition is None else f" ({condition.message}; {condition.unblock})"
        yield f"{what} {id} is {_short(other)}{more}, without the fault {_short(one)}"
