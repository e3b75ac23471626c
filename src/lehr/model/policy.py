"""Policies on intent: what assets must be, what is put on them, and what is made for each of them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from lehr.base.diagnostics import Severity
from lehr.model.selector import Selector
from lehr.model.types import AssetType

POLICY = "lehr.Policy"

ASSET_VARIABLES = ("id", "type", "payload", "addons")
"""Variables of an expression on one asset."""

SET_VARIABLES = ("assets",)
"""Variables of an expression on all assets that match: a list of mappings with `ASSET_VARIABLES`."""

UNIQUE_VARIABLES = (*ASSET_VARIABLES, "value", "other")
"""Variables of the message of a `unique` rule: also the value, and the id of the asset that has it."""

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
    """Assets that a policy leaves alone although they match.

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


class Values(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Part of an asset, as an asset file writes it. Mappings are gone into; anything else is put whole.

    `{{ EXPRESSION }}` in a text is replaced by the answer in CEL, over `id`, `type`, `payload` and `addons`;
    a text that is nothing else becomes the answer itself: a number, a list.

    Attributes:
        payload: fields of the payload.
        addons: values by addon type.
    """

    payload: dict[str, Any] = {}
    addons: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if not self.payload and not self.addons:
            raise ValueError("it says nothing; give `payload`, `addons` or both")


class Mutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is put on each asset that matches; exactly one of `set` and `default` is given.

    Attributes:
        name: tells it from what else the policy does.
        set: fields that have these values, whatever is written there.
        default: fields that have these values where nobody has written any. What a type has for its own
            default is not written by anybody.
    """

    name: Name
    set: Values | None = None
    default: Values | None = None

    def __post_init__(self) -> None:
        if (self.set is None) == (self.default is None):
            raise ValueError("exactly one of `set` and `default` is given")

    @property
    def values(self) -> tuple[str, Values]:
        """The field that holds the values, and the values."""
        if self.set is not None:
            return "set", self.set
        assert self.default is not None  # the class sees to it
        return "default", self.default


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An asset as an asset file declares it, with `{{ EXPRESSION }}` in its texts as in what is `set`.

    Attributes:
        id: has to differ for each asset that matches: `{{ id }}/check`.
        type: name of a type; no expression, for who makes what is known before anything is made.
        payload, addons: as in an asset file. `lehr.Turndown` is taken over from the asset that it is made
            for, if nothing else is said.
    """

    id: Text
    type: Text
    payload: dict[str, Any] = {}
    addons: dict[str, Any] = {}


class Generation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An asset that is made for each asset that matches, and goes when that one goes.

    Attributes:
        name: tells it from what else the policy does.
        asset: what is made.
    """

    name: Name
    asset: Template


class PolicyExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Assets, and what the policy has to do with them and find in them, for `lehr test`.

    Attributes:
        name: what it shows.
        assets: as an asset file declares them.
        becomes: those of them that `mutate` changes, whole, as they are then. The others stay as they are.
        generates: all that `generate` makes, whole.
        breaks: names of the rules that do not hold then; none for a good example.
    """

    name: Text
    assets: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(min_length=1)]
    becomes: tuple[dict[str, Any], ...] = ()
    generates: tuple[dict[str, Any], ...] = ()
    breaks: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What assets of this partition have to be, what is put on them, and what is made for each of them.

    At least one of `rules`, `mutate` and `generate` is given. All of it happens before anything is
    published; assets of type `lehr.Policy` and declarations of types are never changed by it.

    Attributes:
        description: what it is good for.
        match: assets that it is about.
        exclude: exceptions among them, each with a reason.
        rules: what has to hold of them.
        mutate: what is put on them. Policies go in the order of their ids, and each from top to bottom; each
            sees what those before it have done.
        generate: what is made for each of them.
        tests: good and bad examples, which `lehr test` tries.
    """

    description: str = ""
    match: Match
    exclude: tuple[Exclusion, ...] = ()
    rules: tuple[PolicyRule, ...] = ()
    mutate: tuple[Mutation, ...] = ()
    generate: tuple[Generation, ...] = ()
    tests: tuple[PolicyExample, ...] = ()

    def __post_init__(self) -> None:
        if not self.rules and not self.mutate and not self.generate:
            raise ValueError("it does nothing; give `rules`, `mutate` or `generate`")


POLICY_TYPE = AssetType(POLICY, Policy, governs=True)
