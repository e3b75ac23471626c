"""Compiled mutations of policies: rules, and the fields that they put on assets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from lehr.base.pointers import pointer
from lehr.compiled_policies.policy import INSERTED, Filling, Matching, compiled_value
from lehr.generate.typing.conversion import Place
from lehr.model.asset import AssetId
from lehr.model.policy import Policy
from lehr.model.provenance import Annotated, DeclaredGenerator, Derivation

Path = tuple[str, ...]
"""Keys from the top of an asset's document to a field."""


class Leaf(NamedTuple):
    """A field that a rule puts.

    Attributes:
        fill: its value.
        inner: JSON pointer to it, in the policy's payload.
        mark: the derivation recorded in an asset that has the field from this rule, with the field's line.
        literal: False if it contains expressions.
    """

    path: Path
    fill: Filling
    inner: str
    mark: Annotated
    literal: bool


class MutationRule(NamedTuple):
    """One item of a policy's `mutate`, compiled.

    Attributes:
        sets: True if it overwrites written fields.
        by: the policy and its line.
        place: maps a JSON pointer into the policy's payload to its position.
    """

    policy: AssetId
    name: str
    matching: Matching
    sets: bool
    leaves: tuple[Leaf, ...]
    by: Derivation
    place: Place

    @property
    def description(self) -> str:
        """Description of the rule for messages."""
        return f"rule `{self.name}` of policy `{self.policy}`"

    @property
    def declared(self) -> DeclaredGenerator:
        """The rule, as a generator."""
        return DeclaredGenerator(self.by.generator, self.by.line, self.by.reads, self.by.of)


def mutation_rules(
    id: AssetId, policy: Policy, by: Callable[[str, int], Derivation], place: Place
) -> Iterator[MutationRule]:
    """Compile the `mutate` items of the policy `id`, which must not have problems.

    Args:
        by: maps the name and line of a rule to the derivation recorded in its assets.
        place: maps a JSON pointer into the policy's payload to its position.
    """
    matching = Matching(policy, [])
    for number, item in enumerate(policy.mutate):
        verb, values = item.values
        at = f"/mutate/{number}"
        leaves = [
            Leaf(
                path,
                compiled_value(value, inner, []),
                inner,
                Annotated("", by(item.name, place(inner).line), pointer(path)),
                not _has_expressions(value),
            )
            for root, held in (("payload", values.payload), ("addons", values.addons))
            for path, value, inner in leaves_of(held, (root,), f"{at}/{verb}/{root}")
        ]
        derived = by(item.name, place(at).line)
        yield MutationRule(id, item.name, matching, verb == "set", tuple(leaves), derived, place)


class Put(NamedTuple):
    """A value that a rule put on an asset."""

    rule: MutationRule
    leaf: Leaf
    value: Any


def leaves_of(value: Mapping[str, Any], path: Path, inner: str) -> Iterator[tuple[Path, Any, str]]:
    """Everything but non-empty mappings, with its path and the JSON pointer to it in the policy."""
    for key, item in value.items():
        at = inner + pointer([key])
        if isinstance(item, dict) and item:
            yield from leaves_of(item, (*path, key), at)
        else:
            yield (*path, key), item, at


def _has_expressions(value: Any) -> bool:
    if isinstance(value, str):
        return INSERTED.search(value) is not None
    return any(map(_has_expressions, value)) if isinstance(value, list) else False
