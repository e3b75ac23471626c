"""The compiled rules of a policy, their findings in assets, and the problems in the policy. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.pointers import escaped
from lehr.cel import Expression, NoAnswerError, compile_condition, compile_expression
from lehr.cel.tree import Call, Constant, Fold, Node, Select, Variable, parts_of
from lehr.compiled_policies.policy import (
    INSERTED,
    Matching,
    Unclear,
    compiled_value,
    inserted_in,
    told,
    values_of,
)
from lehr.model.asset import Asset
from lehr.model.policy import ASSET_VARIABLES, SET_VARIABLES, UNIQUE_VARIABLES, Policy, PolicyRule

_LONGEST = 200  # characters of a value in a message

_Values = Mapping[str, Any]


class Violation(NamedTuple):
    """A violation of a rule.

    Attributes:
        rule: None if the policy's own `match` or `exclude` has no answer.
        asset: the offending asset; None if all matching assets together violate the rule.
        message: message of the rule, or why there is no answer.
        answered: False if there is no answer, which never counts as a yes.
        pointer: to the value in the asset's document that the rule is about, if known.
    """

    rule: PolicyRule | None
    asset: Asset | None
    message: str
    answered: bool = True
    pointer: str = ""


class _Rule(NamedTuple):
    rule: PolicyRule
    ask: Expression
    message: Callable[[_Values], str]
    pointer: str


class CompiledPolicy:
    """A compiled policy. Pure.

    Attributes:
        unclear: problems in the policy; if there are any, do not use it.
    """

    def __init__(self, policy: Policy) -> None:
        self.unclear: list[Unclear] = []
        self._matching = Matching(policy, self.unclear)
        rules = [self._compiled_rule(rule, place) for place, rule in enumerate(policy.rules)]
        self._alone = [item for item in rules if item is not None and not item.rule.of_set]
        self._together = [item for item in rules if item is not None and item.rule.of_set]
        self._compare_names(policy)

    @property
    def judges_sets(self) -> bool:
        """Whether a rule judges assets together."""
        return bool(self._together)

    def may_match(self, type: str) -> bool:
        """True when assets of this type can match."""
        return self._matching.may_match(type)

    def matches(self, asset: Asset) -> bool:
        """Whether the policy judges `asset`.

        Raises:
            NoAnswerError: a `where` has no answer for this asset.
        """
        return self._matching.may_concern(asset) and self._matching.matches(values_of(asset))

    def judge(self, asset: Asset) -> Iterator[Violation]:
        """Findings of the rules on single assets for `asset`, if the policy judges it."""
        if not self._matching.may_concern(asset):
            return
        values = values_of(asset)
        try:
            if not self._matching.matches(values):
                return
        except NoAnswerError as error:
            yield Violation(None, asset, str(error), answered=False)
            return
        for rule, ask, message, pointer in self._alone:
            try:
                if ask(values) is not True:
                    yield Violation(rule, asset, message(values), pointer=pointer)
            except NoAnswerError as error:
                yield Violation(rule, asset, str(error), answered=False, pointer=pointer)

    def judge_together(self, assets: Iterable[Asset]) -> Iterator[Violation]:
        """Findings of the rules on sets for `assets`: all matching assets, by id."""
        members = [(asset, values_of(asset)) for asset in sorted(assets, key=lambda asset: asset.id)]
        for item in self._together:
            if item.rule.unique:
                yield from _shared(item, members)
                continue
            values = {"assets": [held for _asset, held in members]}
            try:
                if item.ask(values) is not True:
                    yield Violation(item.rule, None, item.message(values))
            except NoAnswerError as error:
                yield Violation(item.rule, None, str(error), answered=False)

    # --- compiling -----------------------------------------------------------------

    def _compiled_rule(self, rule: PolicyRule, place: int) -> _Rule | None:
        at, (field, text) = f"/rules/{place}", rule.expression
        variables = SET_VARIABLES if rule.require_of_all else ASSET_VARIABLES
        message = self._compiled_message(
            rule.message, UNIQUE_VARIABLES if rule.unique else variables, f"{at}/message"
        )
        try:
            compiled = compile_expression(text, variables)
            ask = compiled.answer if rule.unique else compile_condition(text, variables)
        except ValueError as error:
            self.unclear.append(Unclear(f"{at}/{field}", str(error)))
            return None
        if compiled.tree is not None and _pairs(compiled.tree):
            why = "it compares every asset with every other, which is too slow for many assets; use `unique`"
            self.unclear.append(Unclear(f"{at}/{field}", why))
        return _Rule(rule, ask, message, "" if compiled.tree is None else _subject(compiled.tree) or "")

    def _compiled_message(self, text: str, variables: tuple[str, ...], at: str) -> Callable[[_Values], str]:
        inserted = inserted_in(text, variables, at, self.unclear)
        return lambda values: INSERTED.sub(
            lambda found: _inserted(inserted[found[1]], values, found[0]), text
        )

    def _compare_names(self, policy: Policy) -> None:
        taken: set[str] = set()
        named = [
            *((f"/rules/{place}", item.name) for place, item in enumerate(policy.rules)),
            *((f"/mutate/{place}", item.name) for place, item in enumerate(policy.mutate)),
            *((f"/generate/{place}", item.name) for place, item in enumerate(policy.generate)),
        ]
        for pointer, name in named:
            if name in taken:
                self.unclear.append(Unclear(f"{pointer}/name", f"two rules are called `{name}`"))
            taken.add(name)
        names = {rule.name for rule in policy.rules}
        for place, example in enumerate(policy.tests):
            for at, name in enumerate(example.breaks):
                if name not in names:
                    why = f"the policy has no rule `{name}`; its rules: {', '.join(sorted(names))}"
                    self.unclear.append(Unclear(f"/tests/{place}/breaks/{at}", why))


def unclear_in(policy: Policy) -> list[Unclear]:
    """All problems in a policy."""
    found = CompiledPolicy(policy).unclear
    for place, mutation in enumerate(policy.mutate):
        verb, held = mutation.values
        for root, value in (("payload", held.payload), ("addons", held.addons)):
            compiled_value(value, f"/mutate/{place}/{verb}/{root}", found)
    for place, generation in enumerate(policy.generate):
        at, asset = f"/generate/{place}/asset", generation.asset
        compiled_value(asset.id, f"{at}/id", found)
        compiled_value(asset.payload, f"{at}/payload", found)
        compiled_value(asset.addons, f"{at}/addons", found)
    return found


def not_understood(policy: Asset, unclear: Unclear, at: Position | None) -> Diagnostic:
    """VAL062: a policy has a problem."""
    part = f"`{unclear.pointer}` of " if unclear.pointer else ""
    return Diagnostic(
        code="VAL062",
        what=f"{part}the policy `{policy.id}` is not valid",
        why=unclear.why,
        fix="edit the policy; conditions are CEL over id, type, payload and addons, or over assets: "
        "payload.replicas >= 2",
        subject=policy.id,
        at=at,
    )


def _shared(item: _Rule, members: Iterable[tuple[Asset, _Values]]) -> Iterator[Violation]:
    """Find values that two of `members` share, or that one has twice; the finding is for the later one."""
    holders: dict[bytes, Asset] = {}
    for asset, values in members:
        try:
            answer = item.ask(values)
        except NoAnswerError as error:
            yield Violation(item.rule, asset, str(error), answered=False, pointer=item.pointer)
            continue
        for value in answer if isinstance(answer, list) else () if answer is None else (answer,):
            key = msgspec.json.encode(value, order="sorted")
            if key in holders:
                more = {**values, "value": value, "other": holders[key].id}
                yield Violation(item.rule, asset, item.message(more), pointer=item.pointer)
            holders.setdefault(key, asset)


def _inserted(expression: Expression, values: _Values, otherwise: str) -> str:
    """The answer as text. An expression without an answer must not hide the actual problem."""
    try:
        answer = expression(values)
    except NoAnswerError:
        return otherwise
    text = told(answer)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _subject(node: Node) -> str | None:
    """JSON pointer to the first value of the payload or the addons that an expression is about."""
    path = _path(node)
    if path:
        return path
    match node:
        case Call(_, nodes):
            return next((found for item in nodes if (found := _subject(item))), None)
        case Select(operand):
            return _subject(operand)
    over = getattr(node, "over", None)
    return None if over is None else _subject(over)


def _path(node: Node) -> str | None:
    """JSON pointer for a chain of fields; None for anything else."""
    match node:
        case Variable("payload" | "addons" as name):
            return f"/{name}"
        case Select(operand, field) | Call("_[_]", (operand, Constant(str(field)))):
            held = _path(operand)
            return None if held is None else f"{held}/{escaped(field)}"
    return None


def _pairs(node: Node, *, within: bool = False) -> bool:
    """Whether a macro over `assets` is inside the body of another macro."""
    if not isinstance(node, Fold):
        return any(_pairs(inner, within=within) for inner in parts_of(node))
    if within and _speaks_of_assets(node.over):
        return True
    once, each = (node.over, node.initial, node.result), (node.goes_on, node.step)
    return any(_pairs(inner, within=within) for inner in once) or any(
        _pairs(inner, within=True) for inner in each
    )


def _speaks_of_assets(node: Node) -> bool:
    return node == Variable("assets") or any(map(_speaks_of_assets, parts_of(node)))
