"""Problems that prevent policies from changing an asset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.pointers import pointer
from lehr.generate.policies.mutation_rules import Leaf, MutationRule, Put
from lehr.generate.typing.problems import quoted, show
from lehr.model.asset import Asset

NO_ANSWER, CONFLICT, UNSTABLE = "GEN040", "GEN041", "GEN042"


def put_problem(
    item: Diagnostic, asset: Asset, changers: Iterable[MutationRule], put: Put | None
) -> Diagnostic:
    """A problem of a changed asset, naming the policy that changed it.

    A wrong literal value in a policy is wrong for all assets, and reported once.

    Args:
        put: the wrong value; None if the asset as a whole, or something else in it, is wrong.
    """
    if put is not None and put.leaf.literal:
        why = f"{item.why}; {put.rule.description} puts it on everything that it matches".removeprefix("; ")
        return replace(item, why=why, subject=put.rule.policy)
    who = ", ".join(dict.fromkeys(rule.description for rule in ([put.rule] if put else changers)))
    return replace(item, why=f"{item.why}; {who} put it on {quoted(asset.id)}".removeprefix("; "))


def rule_has_no_answer(rule: MutationRule, asset: Asset, inner: str, why: str) -> Diagnostic:
    """GEN040: an expression has no answer, at a JSON pointer into the payload of the policy."""
    return no_answer(rule.description, asset, rule.place(inner), why)


def no_answer(who: str, asset: Asset, at: Position, why: str) -> Diagnostic:
    """GEN040: an expression in a policy has no answer for an asset."""
    return Diagnostic(
        code=NO_ANSWER,
        what=f"{who} has no answer for {quoted(asset.id)}: {why}",
        why=f"{quoted(asset.id)} is declared at {asset.origin}; Lehr does not guess",
        fix="match only assets that have it, or define the value without it: has(payload.x) ? payload.x : 0",
        subject=asset.id,
        at=at,
    )


def conflict(asset: Asset, old: Put, new: Put) -> Diagnostic:
    """GEN041: two rules with the same verb disagree."""
    verb = "set" if new.rule.sets else "give as a default"
    one, other = (
        f"{put.rule.description} ({put.rule.place(put.leaf.inner)}) has {_shown(put.value)}"
        for put in (old, new)
    )
    return Diagnostic(
        code=CONFLICT,
        what=f"two policies {verb} `{pointer(new.leaf.path)}` of {quoted(asset.id)} to different values",
        why=f"{one}; {other}; one of the two would be lost",
        fix="keep only one of them, or exclude the asset from the other with a reason",
        subject=asset.id,
        at=new.rule.place(new.leaf.inner),
    )


def unstable(asset: Asset, rule: MutationRule, leaf: Leaf, value: Any) -> Diagnostic:
    """GEN042: a rule would change the result of all rules."""
    return Diagnostic(
        code=UNSTABLE,
        what=f"{rule.description} would change {quoted(asset.id)} again: "
        f"`{pointer(leaf.path)}` to {_shown(value)}",
        why="applying policies twice must have the same result as once; policies apply in the order of "
        "ids, and this change follows from the policy itself or from one after it",
        fix="derive the value from fields that no policy changes; or give the policy an id that sorts later",
        subject=asset.id,
        at=rule.place(leaf.inner),
    )


def _shown(value: Any) -> str:
    return show(value).removeprefix("the string ").removeprefix("the number ")
