"""Assets that policies make: one for each asset that matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Position
from lehr.cel import NoAnswerError
from lehr.compiled_policies.policy import NEVER_CHANGED, Filling, Matching, compiled_value, values_of
from lehr.generate.outcome.output import Output, gathered
from lehr.generate.policies.mutation_problems import no_answer
from lehr.generate.typing.conversion import Place, convert
from lehr.generate.typing.problems import quoted, show
from lehr.generate.typing.unset_fields import unset_fields
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId
from lehr.model.policy import Policy
from lehr.model.provenance import Derivation
from lehr.model.selector import Selector
from lehr.model.types import Registry


class DerivingRule(NamedTuple):
    """One item of a policy's `generate`, compiled.

    Attributes:
        at: JSON pointer to it, in the policy's payload.
        makes: type of the assets that it makes.
        fill: the asset as an asset file would declare it.
        by: the policy and its line.
        place: maps a JSON pointer into the policy's payload to its position.
    """

    policy: AssetId
    name: str
    matching: Matching
    at: str
    makes: str
    fill: Filling
    by: Derivation
    place: Place

    @property
    def select(self) -> Selector:
        """The assets that it may apply to."""
        return self.matching.select

    @property
    def description(self) -> str:
        """Description of the rule for messages."""
        return f"rule `{self.name}` of policy `{self.policy}`"

    def output(self, asset: Asset, inputs: str, registry: Registry) -> Output:
        """The asset made for `asset`."""
        if asset.type in NEVER_CHANGED:
            return Output(inputs)
        values = values_of(asset)
        try:
            if not self.matching.matches(values):
                return Output(inputs)
            value = self.fill(values)
        except NoAnswerError as error:
            at = self.place(self.at)
            return Output(inputs, diagnostics=(no_answer(self.description, asset, at, str(error)),))
        turndown = values["addons"].get(TURNDOWN)
        if turndown is not None:
            value["addons"] = {TURNDOWN: turndown, **value["addons"]}

        def place(pointer: str) -> Position:
            return self.place(f"{self.at}/asset{pointer}")

        by = replace(self.by, item=asset.id)
        if not isinstance(value["id"], str):
            return Output(inputs, diagnostics=(self._no_id(asset, value["id"], place("/id")),))
        made, found = convert(value, registry, Position(by.module, by.line), place, by)
        problems = tuple(replace(item, why=self._made_for(item.why, asset)) for item in found)
        if made is None:
            return Output(inputs, diagnostics=problems)
        unset = gathered([unset_fields(value, made, registry)])
        return Output(inputs, (made,), diagnostics=problems, unset_fields=unset)

    def _made_for(self, why: str, asset: Asset) -> str:
        return f"{why}; {self.description} makes it for {quoted(asset.id)}".removeprefix("; ")

    def _no_id(self, asset: Asset, value: Any, at: Position) -> Diagnostic:
        return Diagnostic(
            code="GEN004",
            what=f"{show(value)} is not a valid asset id",
            why=self._made_for("", asset),
            fix="write text around the expression: `check/{{ payload.number }}`",
            subject=self.policy,
            at=at,
        )


def deriving_rules(
    id: AssetId, policy: Policy, by: Callable[[str, int], Derivation], place: Place
) -> Iterator[DerivingRule]:
    """Compile the `generate` items of the policy `id`. Arguments as for `mutation_rules`."""
    matching = Matching(policy, [])
    for number, item in enumerate(policy.generate):
        at = f"/generate/{number}"
        asset = item.asset
        value = {"id": asset.id, "type": asset.type, "payload": asset.payload, "addons": asset.addons}
        fill = compiled_value(value, f"{at}/asset", [])
        derived = by(item.name, place(at).line)
        yield DerivingRule(id, item.name, matching, at, asset.type, fill, derived, place)
