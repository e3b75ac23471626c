"""Applies policies to what has changed.

An asset that has changed is judged by every policy that matches it. A new or changed policy judges all assets
that it matches, and rules on sets judge all assets that their policy matches as soon as one of them changes.
Nothing else is read.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterator
from typing import NamedTuple

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.cel import NoAnswerError
from lehr.compiled_policies.rules import CompiledPolicy, Violation, not_understood, unclear_in
from lehr.model.asset import Asset
from lehr.model.incarnation import AssetChange
from lehr.model.policy import POLICY, Policy, PolicyRule
from lehr.model.types import Registry
from lehr.validate.proposal import AssetView, DeltaProposal

BROKEN, NO_ANSWER = "VAL060", "VAL061"


class _ValidPolicy(NamedTuple):
    """A policy of the candidate.

    Attributes:
        new: whether it judges differently than in the predecessor, so that all its matches are judged.
    """

    asset: Asset
    policy: Policy
    compiled: CompiledPolicy
    new: bool


def policy_is_not_understood(view: AssetView) -> Iterator[Diagnostic]:
    """VAL062: every expression of a policy compiles, and the names in it exist."""
    asset = view.change.after
    if asset is None or asset.type != POLICY or POLICY not in view.registry.types:
        return
    for item in unclear_in(view.registry.payload(asset, Policy)):
        yield not_understood(asset, item, view.place(asset, f"/payload{item.pointer}"))


def policy_selects_no_type(view: AssetView) -> Iterator[Diagnostic]:
    """VAL063, a warning: a selected type does not exist, so the policy covers less than it seems to."""
    asset = view.change.after
    if asset is None or asset.type != POLICY or POLICY not in view.registry.types:
        return
    policy, known = view.registry.payload(asset, Policy), sorted(view.registry.types)
    parts = [("match", policy.match), *((f"exclude/{at}", item) for at, item in enumerate(policy.exclude))]
    for name, part in parts:
        for at, pattern in enumerate(part.select.types if part.select is not None else ()):
            if fnmatch.filter(known, pattern):
                continue
            close = difflib.get_close_matches(pattern, known, n=1)
            yield Diagnostic(
                code="VAL063",
                what=f"policy `{asset.id}` selects `{pattern}`, which is not a type",
                why="it covers less than it seems to: no asset can have that type",
                fix=f"did you mean `{close[0]}`?" if close else "`lehr types` lists the existing types",
                subject=asset.id,
                at=view.place(asset, f"/payload/{name}/select/types/{at}"),
                severity=Severity.WARNING,
            )


def policy_is_broken(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL060, VAL061: every rule of every policy holds, and has an answer."""
    for valid in _valid_policies(proposal):
        places: dict[str, Position | None] = {}  # locating one reads a file again
        for finding in _found(proposal, valid):
            pointer = _pointer(valid.policy, finding.rule)
            if pointer not in places:
                places[pointer] = proposal.place(valid.asset, pointer)
            yield _diagnostic(proposal, valid.asset, finding, places[pointer])


def _valid_policies(proposal: DeltaProposal) -> Iterator[_ValidPolicy]:
    """The policies of the candidate without problems, by id."""
    registry = proposal.registry
    if POLICY not in registry.types:
        return
    policies = sorted(proposal.of_types(lambda type: type == POLICY), key=lambda asset: asset.id)
    changes = {change.id: change for change in proposal.changes()} if policies else {}
    for asset in policies:
        policy = registry.payload(asset, Policy)
        compiled = CompiledPolicy(policy)
        if policy.rules and not compiled.unclear:
            yield _ValidPolicy(asset, policy, compiled, _is_new(registry, policy, changes.get(asset.id)))


def _is_new(registry: Registry, policy: Policy, change: AssetChange | None) -> bool:
    if change is None:
        return False
    if change.before is None or change.before.type != POLICY:
        return True
    return _judged_by(registry.payload(change.before, Policy)) != _judged_by(policy)


def _judged_by(policy: Policy) -> tuple[object, ...]:
    """The parts of a policy that determine how it judges."""
    return policy.match, policy.exclude, policy.rules


def _found(proposal: DeltaProposal, valid: _ValidPolicy) -> Iterator[Violation]:
    compiled = valid.compiled
    if valid.new:
        for asset in proposal.of_types(compiled.may_match):
            yield from compiled.judge(asset)
    else:
        for change in proposal.changes():
            if change.after is not None:
                yield from compiled.judge(change.after)
    if compiled.judges_sets and (valid.new or _touched(proposal, compiled)):
        assets = proposal.of_types(compiled.may_match)
        yield from compiled.judge_together(asset for asset in assets if _belongs(compiled, asset))


def _touched(proposal: DeltaProposal, compiled: CompiledPolicy) -> bool:
    return any(
        asset is not None and _belongs(compiled, asset)
        for change in proposal.changes()
        for asset in (change.before, change.after)
    )


def _belongs(compiled: CompiledPolicy, asset: Asset) -> bool:
    """As `CompiledPolicy.matches`; if that has no answer, `judge` has reported it."""
    try:
        return compiled.matches(asset)
    except NoAnswerError:
        return False


def _pointer(policy: Policy, rule: PolicyRule | None) -> str:
    """JSON pointer to the source of a finding, in the policy's document."""
    return "/payload/match" if rule is None else f"/payload/rules/{policy.rules.index(rule)}"


def _diagnostic(
    proposal: DeltaProposal, policy: Asset, finding: Violation, declared: Position | None
) -> Diagnostic:
    rule, asset = finding.rule, finding.asset
    named = f"policy `{policy.id}`" + ("" if rule is None else f", rule `{rule.name}`")
    where = "" if declared is None else f" ({declared})"
    subject = policy.id if asset is None else asset.id
    at = declared if asset is None else proposal.place(asset, finding.pointer)
    severity = Severity.ERROR if rule is None else rule.severity
    if rule is not None and finding.answered:
        return Diagnostic(
            code=BROKEN,
            what=finding.message,
            why=f"{named}{where}: {_expression_text(rule)}",
            fix=rule.fix or _fix(asset),
            subject=subject,
            at=at,
            severity=severity,
        )
    part = "its `match` or `exclude`" if rule is None else _expression_text(rule)
    return Diagnostic(
        code=NO_ANSWER,
        what=f"{named} has no answer for `{subject}`: {finding.message}",
        why=f"{part}{where} refers to something that does not exist, which does not count as true",
        fix="add it to the asset, or handle its absence in the policy: !has(payload.x) || payload.x > 0",
        subject=subject,
        at=at,
        severity=severity,
    )


def _fix(asset: Asset | None) -> str:
    if asset is None:
        return "change one of the assets that match, or put it under `exclude` of the policy with a reason"
    return f"change it, or put `{asset.id}` under `exclude` of the policy with a reason"


def _expression_text(rule: PolicyRule) -> str:
    field, text = rule.expression
    return f"`{field}: {' '.join(text.split())}`"
