"""Policies: what assets have to be, as rules that people write in intent.

Architecture invariant: a policy only judges. It changes no asset and makes none.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from lehr.base.diagnostics import Severity
from lehr.model.selector import Selector
from lehr.model.types import AssetType

POLICY = "lehr.Policy"

ASSET_VARIABLES = ("id", "type", "payload", "addons")
"""What an expression on one asset may speak of."""

SET_VARIABLES = ("assets",)
"""What an expression on all assets that match may speak of: a list of mappings with `ASSET_VARIABLES`."""

UNIQUE_VARIABLES = (*ASSET_VARIABLES, "value", "other")
"""What the message of a `unique` rule may speak of: also the value, and the id of who has it already."""

Text = Annotated[str, msgspec.Meta(min_length=1)]
Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,62}$")]


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Assets for which both parts hold; one may be left out.

    Attributes:
        select: by id, type and labels.
        where: by a condition in CEL over `id`, `type`, `payload` and `addons`.
    """

    select: Selector | None = None
    where: str = ""

    def __post_init__(self) -> None:
        if self.select is None and not self.where:
            raise ValueError("it matches nothing; give `select`, `where` or both")


class Exclusion(Match, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Assets that a policy does not judge although they match.

    Attributes:
        select, where: as in `match`.
        reason: why, for whoever asks later.
    """

    reason: Text


class PolicyRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What has to hold; exactly one of `require`, `require_of_all` and `unique` is given, in CEL.

    Attributes:
        name: tells it from the policy's other rules.
        require: a condition on each asset, over `id`, `type`, `payload` and `addons`.
        require_of_all: a condition on all assets that match, over `assets`, a list of such mappings.
        unique: a value that no two assets share, over the same as `require`. Each item of a list counts
            by itself, and null does not count.
        message: what is wrong when it does not hold, for people. `{{ EXPRESSION }}` in it is replaced
            by the answer, over the same variables; of `unique` also over `value` and `other`, the id of
            the asset that has the value already.
        fix: what to do about it.
        severity: an error is not published.
    """

    name: Name
    require: str = ""
    require_of_all: str = ""
    unique: str = ""
    message: Text
    fix: str = ""
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        if sum(map(bool, (self.require, self.require_of_all, self.unique))) != 1:
            raise ValueError("exactly one of `require`, `require_of_all` and `unique` is given")

    @property
    def of_set(self) -> bool:
        """Whether it judges assets together."""
        return not self.require

    @property
    def expression(self) -> tuple[str, str]:
        """The field that holds the expression, and the expression."""
        if self.require:
            return "require", self.require
        return ("unique", self.unique) if self.unique else ("require_of_all", self.require_of_all)


class PolicyExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Assets, and what the policy has to find in them, for `lehr test`.

    Attributes:
        name: what it shows.
        assets: as an asset file declares them.
        breaks: names of the rules that do not hold; none for a good example.
    """

    name: Text
    assets: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(min_length=1)]
    breaks: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What assets of this partition have to be. Judged before anything is published.

    Attributes:
        description: what it is good for.
        match: assets that it judges.
        exclude: exceptions among them, each with a reason.
        rules: what has to hold.
        tests: good and bad examples, which `lehr test` tries.
    """

    description: str = ""
    match: Match
    exclude: tuple[Exclusion, ...] = ()
    rules: Annotated[tuple[PolicyRule, ...], msgspec.Meta(min_length=1)]
    tests: tuple[PolicyExample, ...] = ()


POLICY_TYPE = AssetType(POLICY, Policy, governs=True)
