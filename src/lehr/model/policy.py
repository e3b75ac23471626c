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
            raise ValueError("it matches nothing; set `select`, `where` or both")


class Exclusion(Match, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Assets that match, but that a policy does not apply to.

    Attributes:
        select, where: as in `match`.
        reason: why, for later readers.
    """

    reason: Text


class PolicyRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A condition on assets: exactly one of `require`, `require_of_all` and `unique`, in CEL.

    Attributes:
        name: unique among the policy's rules.
        require: a condition on each asset, over `id`, `type`, `payload` and `addons`.
        require_of_all: a condition on all assets that match, over `assets`, a list of such mappings.
        unique: a value that no two assets share, over the same as `require`. Each item of a list counts
            separately, and null does not count.
        message: the problem if the condition does not hold. `{{ EXPRESSION }}` in it is replaced
            by the answer, over the same variables; of `unique` also over `value` and `other`, the id of
            the asset that has the value already.
        fix: what to do about it.
        severity: an error prevents publication.
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
            raise ValueError("set exactly one of `require`, `require_of_all` and `unique`")

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
    """Part of an asset, as in an asset file. Mappings are merged; any other value is set as a whole.

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
            raise ValueError("it is empty; set `payload`, `addons` or both")


class Mutation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Values that are set on each asset that matches: exactly one of `set` and `default`.

    Attributes:
        name: unique within the policy.
        set: fields that get these values, whatever intent declares there.
        default: fields that get these values where intent declares none. The default of a type does
            not count as declared.
    """

    name: Name
    set: Values | None = None
    default: Values | None = None

    def __post_init__(self) -> None:
        if (self.set is None) == (self.default is None):
            raise ValueError("set exactly one of `set` and `default`")

    @property
    def values(self) -> tuple[str, Values]:
        """The field that holds the values, and the values."""
        if self.set is not None:
            return "set", self.set
        assert self.default is not None  # ensured by the class
        return "default", self.default


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An asset as an asset file declares it, with `{{ EXPRESSION }}` in its texts as in `set`.

    Attributes:
        id: must differ for each asset that matches: `{{ id }}/check`.
        type: name of a type, without expressions: which policies make which types is known in advance.
        payload, addons: as in an asset file. `lehr.Turndown` is copied from the asset that it is made
            for, unless it is declared here.
    """

    id: Text
    type: Text
    payload: dict[str, Any] = {}
    addons: dict[str, Any] = {}


class Generation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An asset that is made for each asset that matches, and disappears together with it.

    Attributes:
        name: unique within the policy.
        asset: the asset to make.
    """

    name: Name
    asset: Template


class PolicyExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Assets, and what the policy should change, make and find, for `lehr test`.

    Attributes:
        name: what it shows.
        assets: as an asset file declares them.
        becomes: the assets that `mutate` changes, complete, as they become. All others stay as they are.
        generates: every asset that `generate` makes, complete.
        breaks: names of the rules that do not hold afterwards; none for a good example.
    """

    name: Text
    assets: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(min_length=1)]
    becomes: tuple[dict[str, Any], ...] = ()
    generates: tuple[dict[str, Any], ...] = ()
    breaks: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rules for assets of this partition, changes to them, and assets made for each of them.

    At least one of `rules`, `mutate` and `generate` is set. All of it happens before publication; assets
    of type `lehr.Policy` and declarations of types are never changed.

    Attributes:
        description: its purpose.
        match: assets that it applies to.
        exclude: exceptions among them, each with a reason.
        rules: conditions that must hold for them.
        mutate: values that are set on them. Policies apply in the order of their ids, and each from top to
            bottom; each sees the changes of those before it.
        generate: assets that are made for each of them.
        tests: good and bad examples, which `lehr test` runs.
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
            raise ValueError("it does nothing; set `rules`, `mutate` or `generate`")


POLICY_TYPE = AssetType(POLICY, Policy, governs=True)
