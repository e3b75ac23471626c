"""Runs the examples of policies, and compares effects and broken rules with the expected ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.base.documents import SUFFIXES
from lehr.base.errors import LehrError, raised_as
from lehr.compiled_policies.rules import CompiledPolicy, Violation
from lehr.dry_run.example_effects import Difference, Given, Locate, PolicyEffects, compared, problems_of
from lehr.generate.typing.asset_files import place_of, read_assets
from lehr.generate.typing.conversion import convert
from lehr.generate.typing.unset_fields import unset_fields
from lehr.model.asset import Asset
from lehr.model.policy import POLICY, Policy, PolicyExample
from lehr.model.types import Registry

_NOT_AS_EXPECTED = "TST001"


class BrokenRule(msgspec.Struct, frozen=True):
    """A rule that an example breaks.

    Attributes:
        asset: the asset at fault; None for all matching assets together.
    """

    rule: str
    asset: str | None
    message: str


class Trial(msgspec.Struct, frozen=True):
    """One example, and its result.

    Attributes:
        expected: the rules that it should break, sorted.
        found: the rules that it breaks.
        problems: why it failed; empty if it passed.
        effects: names of the mutations and generations that had an effect.
        differences: the assets whose result is not the expected one.
    """

    policy: str
    example: str
    at: Position | None
    expected: tuple[str, ...]
    found: tuple[BrokenRule, ...]
    problems: tuple[Diagnostic, ...]
    effects: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the result is the expected one."""
        return not self.problems


class Declared(NamedTuple):
    """Policies as files declare them.

    Attributes:
        locate: finds the position of a value of one of them.
        diagnostics: problems in the files.
    """

    policies: tuple[Asset, ...]
    registry: Registry
    locate: Locate
    diagnostics: tuple[Diagnostic, ...]


def declared_in_files(path: Path, registry: Registry) -> Declared:
    """The policies that the file `path` declares, or the files below the folder `path`.

    Raises:
        LehrError: there is no such file or folder, or it cannot be read.
    """
    what, fix = f"{path} cannot be read", "check the path"
    with raised_as(LehrError, what, code="CLI112", fix=fix, on=(OSError,)):  # with the path of the file
        files = [item for item in path.rglob("*") if item.suffix in SUFFIXES] if path.is_dir() else [path]
        contents = {str(item): item.read_bytes() for item in sorted(files) if item.is_file() or item == path}
    outputs = [read_assets(name, content, "", registry) for name, content in contents.items()]
    policies = tuple(asset for output in outputs for asset in output.assets if asset.type == POLICY)
    diagnostics = [item for output in outputs for item in output.diagnostics]
    locate = locating(contents.get)
    for asset in policies:
        diagnostics += problems_of(asset, registry, locate)
    return Declared(policies, registry, locate, tuple(diagnostics))


def locating(read: Callable[[str], bytes | None]) -> Locate:
    """Return a function that finds positions of values of assets in the files that `read` knows."""

    def locate(asset: Asset, pointer: str) -> Position | None:
        content = None if asset.origin is None else read(asset.origin.file)
        if asset.origin is None or content is None:
            return asset.origin
        return place_of(asset.origin.file, content, asset.id, pointer) or asset.origin

    return locate


def tried(declared: Declared) -> Iterator[Trial]:
    """Run every example of every policy, by id. All policies must be valid."""
    for asset in sorted(declared.policies, key=lambda asset: asset.id):
        policy = declared.registry.payload(asset, Policy)
        compiled = CompiledPolicy(policy)
        effects = PolicyEffects(asset, declared.registry, declared.locate)
        for number, example in enumerate(policy.tests):
            yield _Example(
                declared, asset, compiled, effects, example, f"/payload/tests/{number}", []
            ).trial()


def untried(declared: Declared, trials: Iterable[Trial]) -> Iterator[str]:
    """Parts of policies that no example exercises, in words: rules, mutations and generations."""
    seen: dict[str, set[str]] = {}
    for trial in trials:
        seen.setdefault(trial.policy, set()).update((*trial.expected, *trial.effects))
    for asset in sorted(declared.policies, key=lambda asset: asset.id):
        policy, shown = declared.registry.payload(asset, Policy), seen.get(asset.id, set())
        named = (
            *(("breaks the rule", rule.name) for rule in policy.rules),
            *(("is changed by", item.name) for item in policy.mutate),
            *(("generates anything with", item.name) for item in policy.generate),
        )
        for what, name in named:
            if name not in shown:
                yield f"no example {what} `{name}` of `{asset.id}`"


class _Example(NamedTuple):
    """One example of a policy.

    Attributes:
        pointer: to it, in the document of the policy.
        problems: of the assets that it declares; they are added while it runs.
    """

    declared: Declared
    policy: Asset
    compiled: CompiledPolicy
    effects: PolicyEffects
    example: PolicyExample
    pointer: str
    problems: list[Diagnostic]

    def trial(self) -> Trial:
        """Run the example."""
        policy, example = self.policy, self.example
        at = self.declared.locate(policy, self.pointer)
        given = self._assets("assets", example.assets)
        changed, made = self._assets("becomes", example.becomes), self._assets("generates", example.generates)
        expected = tuple(sorted(set(example.breaks)))
        if self.problems:  # an asset that is not valid cannot be compared
            return Trial(policy.id, example.name, at, expected, (), tuple(self.problems))
        outcome = self.effects.on(given)
        differences = list(compared(given, outcome, changed, made)) if not outcome.problems else []
        results = [*outcome.assets, *outcome.made]
        findings = [] if outcome.problems else list(_findings(self.compiled, results))
        found = tuple(
            BrokenRule(item.rule.name, None if item.asset is None else item.asset.id, item.message)
            for item in findings
            if item.answered and item.rule is not None
        )
        problems = [*outcome.problems, *map(self._diagnostic, differences)]
        if not outcome.problems:
            problems += self._surprises(expected, found, findings, at)
        return Trial(
            policy.id,
            example.name,
            at,
            expected,
            found,
            tuple(problems),
            outcome.effects,
            tuple(differences),
        )

    def _assets(self, part: str, values: Iterable[Any]) -> list[Given]:
        """The assets in one field of the example; errors in them are added to the problems."""
        assets: list[Given] = []
        for number, value in enumerate(values):

            def place(inner: str, number: int = number) -> Position:
                return self._place(f"/{part}/{number}{inner}")

            asset, found = convert(value, self.declared.registry, place(""), place)
            self.problems.extend(errors(found))
            if asset is not None:
                assets.append(Given(asset, unset_fields(value, asset, self.declared.registry)))
        return assets

    def _place(self, inner: str) -> Position:
        nowhere = self.policy.origin or Position("")
        return self.declared.locate(self.policy, self.pointer + inner) or nowhere

    @property
    def _named(self) -> str:
        return f"the example `{self.example.name}` of `{self.policy.id}`"

    def _problem(self, what: str, why: str, fix: str, at: Position | None) -> Diagnostic:
        subject = self.policy.id
        return Diagnostic(code=_NOT_AS_EXPECTED, what=what, why=why, fix=fix, subject=subject, at=at)

    def _diagnostic(self, item: Difference) -> Diagnostic:
        what = f"the result for `{item.asset}` does not match {self._named}: {item.what}"
        fix = f"fix the policy, or `{item.part}` of the example"
        return self._problem(what, "; ".join(item.fields), fix, self._place(item.pointer))

    def _surprises(
        self,
        expected: tuple[str, ...],
        found: tuple[BrokenRule, ...],
        findings: Iterable[Violation],
        at: Position | None,
    ) -> Iterator[Diagnostic]:
        """Unanswered rules, and broken rules that differ from the expected ones."""
        for item in findings:
            if not item.answered:
                asked = "`match` or `exclude`" if item.rule is None else f"`{item.rule.name}`"
                of = "all assets together" if item.asset is None else f"`{item.asset.id}`"
                yield self._problem(
                    f"{asked} has no answer in {self._named}",
                    f"for {of}: {item.message}",
                    "handle missing values in the policy, for example: !has(payload.x) || payload.x > 0",
                    at,
                )
        got = tuple(sorted({item.rule for item in found}))
        if got != expected:
            messages = "; ".join(item.message for item in found)
            yield self._problem(
                f"{self._named} should break {_listed(expected)}, but breaks {_listed(got)}",
                messages and f"found: {messages}",
                "fix the rule, or `breaks` of the example",
                at,
            )


def _findings(compiled: CompiledPolicy, assets: Iterable[Asset]) -> Iterator[Violation]:
    members = []
    for asset in assets:
        found = list(compiled.judge(asset))
        yield from found
        if not any(item.rule is None for item in found) and compiled.matches(asset):
            members.append(asset)
    yield from compiled.judge_together(members)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "no rule"
