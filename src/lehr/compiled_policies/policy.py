"""Compiled policies: the assets that they apply to, and values that contain expressions. Pure."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from lehr.base.documents.text import number_problem
from lehr.base.pointers import escaped
from lehr.cel import Condition, Expression, NoAnswerError, compile_condition, compile_expression
from lehr.model.addons import LABELS
from lehr.model.asset import Asset
from lehr.model.declared import TYPE
from lehr.model.policy import ASSET_VARIABLES, POLICY, Match, Policy
from lehr.model.selector import Selector

INSERTED = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
"""An expression in a string."""

NEVER_CHANGED = (POLICY, TYPE)
"""Types of assets that policies neither change nor generate for: they must be fixed before policies run."""

AssetValues = Mapping[str, Any]
"""A value for each of `ASSET_VARIABLES`."""

Filling = Callable[[AssetValues], Any]
"""Return plain data, with each expression replaced by its answer for these values. Raises `NoAnswerError`."""


class Unclear(NamedTuple):
    """A problem in a policy.

    Attributes:
        pointer: JSON pointer to it, in the policy's payload.
    """

    pointer: str
    why: str


def values_of(asset: Asset) -> AssetValues:
    """Values of the variables in an expression on `asset`."""
    body = msgspec.json.decode(asset.body)
    return {"id": asset.id, "type": asset.type, "payload": body["payload"], "addons": body["addons"]}


class Matching:
    """The assets that a policy applies to.

    Args:
        unclear: problems are appended to it; do not use this object if there are any.
    """

    def __init__(self, policy: Policy, unclear: list[Unclear]) -> None:
        self._match = _compiled(policy.match, "/match", unclear)
        self._exclude = [
            _compiled(item, f"/exclude/{place}", unclear) for place, item in enumerate(policy.exclude)
        ]
        self.select = policy.match.select or Selector(all=True)

        self.may_match = functools.cache(self.select.may_match)
        """True when assets of a type can match."""

    def may_concern(self, asset: Asset) -> bool:
        """True when an asset of this id and type can match, regardless of its other values."""
        return self.may_match(asset.type) and _fits(asset.id, self.select.ids)

    def matches(self, values: AssetValues) -> bool:
        """Whether the policy applies to an asset with these values.

        Raises:
            NoAnswerError: a `where` has no answer for them.
        """
        return self._match(values) and not any(excluded(values) for excluded in self._exclude)


def compiled_value(value: Any, at: str, unclear: list[Unclear]) -> Filling:
    """Plain data whose strings may contain expressions over an asset.

    Args:
        at: JSON pointer to it, in the policy's payload.
        unclear: problems are appended to it; do not use this object if there are any.
    """
    if isinstance(value, str) and "{{" in value:
        return _compiled_text(value, at, unclear)
    if isinstance(value, dict):
        fields = {key: compiled_value(item, f"{at}/{escaped(key)}", unclear) for key, item in value.items()}
        return lambda values: {key: fill(values) for key, fill in fields.items()}
    if isinstance(value, list | tuple):
        items = [compiled_value(item, f"{at}/{place}", unclear) for place, item in enumerate(value)]
        return lambda values: [fill(values) for fill in items]
    return lambda values: value


def told(answer: Any) -> str:
    """Format an answer for insertion into a string."""
    return answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()


def _compiled(match: Match, at: str, unclear: list[Unclear]) -> Condition:
    selected = _selecting(match.select or Selector(all=True))
    if not match.where:
        return selected
    try:
        where = compile_condition(match.where, ASSET_VARIABLES)
    except ValueError as error:
        unclear.append(Unclear(f"{at}/where", str(error)))
        return lambda values: False
    return lambda values: selected(values) and where(values)


def _selecting(select: Selector) -> Condition:
    """`Selector.matches` for assets that are still being generated and have no body yet."""
    may_match, ids, labels = functools.cache(select.may_match), select.ids, select.labels
    return lambda values: (
        may_match(values["type"])
        and _fits(values["id"], ids)
        and (not labels or _labelled(values["addons"].get(LABELS), labels))
    )


def _fits(id: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(id, pattern) for pattern in patterns)


def _labelled(addon: Any, labels: Mapping[str, str]) -> bool:
    have = addon.get("labels") if isinstance(addon, dict) else None
    return isinstance(have, dict) and all(have.get(key) == value for key, value in labels.items())


def inserted_in(
    text: str, variables: tuple[str, ...], at: str, unclear: list[Unclear]
) -> dict[str, Expression]:
    """The compiled expressions in a string, by their text; as `compiled_value`."""
    found: dict[str, Expression] = {}
    for expression in INSERTED.findall(text):
        try:
            found[expression] = compile_expression(expression.strip(), variables).answer
        except ValueError as error:
            unclear.append(Unclear(at, f"`{{{{{expression}}}}}`: {error}"))
    return found


def _compiled_text(text: str, at: str, unclear: list[Unclear]) -> Filling:
    asked = inserted_in(text, ASSET_VARIABLES, at, unclear)
    whole = INSERTED.fullmatch(text)
    if whole is not None and whole[1] in asked:
        return _naming(whole[1], asked[whole[1]])
    parts = {expression: _naming(expression, answer) for expression, answer in asked.items()}
    return lambda values: INSERTED.sub(lambda found: told(parts[found[1]](values)), text)


def _naming(expression: str, answer: Expression) -> Filling:
    def fill(values: AssetValues) -> Any:
        try:
            found = answer(values)
        except NoAnswerError as error:
            raise NoAnswerError(f"`{{{{{expression}}}}}`: {error}") from error
        problem = _data_problem(found)
        if problem is not None:
            raise NoAnswerError(f"`{{{{{expression}}}}}`: {problem}")
        return found

    return fill


def _data_problem(answer: Any) -> str | None:
    """Why an asset cannot hold an answer; None when it can."""
    if answer is None or isinstance(answer, bool | str):
        return None
    if isinstance(answer, int | float):
        problem = number_problem(answer)
        return None if problem is None else f"the answer is the number {answer}; {problem}"
    if isinstance(answer, list):
        return next(filter(None, map(_data_problem, answer)), None)
    if isinstance(answer, dict):
        if not all(isinstance(key, str) for key in answer):
            return "the answer is a map whose keys are not strings"
        return next(filter(None, map(_data_problem, answer.values())), None)
    return "the answer is not plain data; make it a string: string(...)"
