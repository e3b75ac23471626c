"""The examples of policies, tried: what comes of them, and which rules they break, is as they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.base.documents import SUFFIXES
from lehr.base.errors import LehrError
from lehr.compiled_policies.rules import CompiledPolicy, Finding
from lehr.dry_run.example_effects import Difference, Given, Locate, PolicyEffects, compared, problems_of
from lehr.generate.typing.asset_files import place_of, read_assets
from lehr.generate.typing.conversion import convert
from lehr.generate.typing.unset_fields import left_out
from lehr.model.asset import Asset
from lehr.model.policy import POLICY, Policy, PolicyExample
from lehr.model.types import Registry

_NOT_AS_EXPECTED = "TST001"


class Found(msgspec.Struct, frozen=True):
    """A rule that an example breaks.

    Attributes:
        asset: at fault; None for all that match together.
    """

    rule: str
    asset: str | None
    message: str


class Trial(msgspec.Struct, frozen=True):
    """One example, and what came of it.

    Attributes:
        expected: the rules that it should break, sorted.
        found: what it breaks.
        problems: why it failed: with none, it passed.
        effects: names of what changed or made something in it.
        differences: how assets have come out otherwise than it says.
    """

    policy: str
    example: str
    at: Position | None
    expected: tuple[str, ...]
    found: tuple[Found, ...]
    problems: tuple[Diagnostic, ...]
    effects: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it came out as expected."""
        return not self.problems


class Declared(NamedTuple):
    """Policies as files declare them.

    Attributes:
        locate: where a value of one of them stands.
        diagnostics: what is wrong with the files.
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
    try:
        files = [item for item in path.rglob("*") if item.suffix in SUFFIXES] if path.is_dir() else [path]
        contents = {str(item): item.read_bytes() for item in sorted(files) if item.is_file() or item == path}
    except OSError as error:
        raise LehrError(
            f"{path} cannot be read", code="CLI112", why=str(error), fix="look at the path"
        ) from error
    outputs = [read_assets(name, content, "", registry) for name, content in contents.items()]
    policies = tuple(asset for output in outputs for asset in output.assets if asset.type == POLICY)
    diagnostics = [item for output in outputs for item in output.diagnostics]
    locate = locating(contents.get)
    for asset in policies:
        diagnostics += problems_of(asset, registry, locate)
    return Declared(policies, registry, locate, tuple(diagnostics))


def locating(read: Callable[[str], bytes | None]) -> Locate:
    """Where values of assets stand in the files that `read` knows."""

    def locate(asset: Asset, pointer: str) -> Position | None:
        content = None if asset.origin is None else read(asset.origin.file)
        if asset.origin is None or content is None:
            return asset.origin
        return place_of(asset.origin.file, content, asset.id, pointer) or asset.origin

    return locate


def tried(declared: Declared) -> Iterator[Trial]:
    """Every example of every policy, by id; none may have anything that cannot be understood."""
    for asset in sorted(declared.policies, key=lambda asset: asset.id):
        policy = declared.registry.payload(asset, Policy)
        compiled = CompiledPolicy(policy)
        effects = PolicyEffects(asset, declared.registry, declared.locate)
        for number, example in enumerate(policy.tests):
            yield _Example(declared, asset, compiled, effects, example, f"/payload/tests/{number}").trial()


def untried(declared: Declared, trials: Iterable[Trial]) -> Iterator[str]:
    """What no example shows to do anything, for people: rules that none breaks, and changes that none has."""
    seen: dict[str, set[str]] = {}
    for trial in trials:
        seen.setdefault(trial.policy, set()).update((*trial.expected, *trial.effects))
    for asset in sorted(declared.policies, key=lambda asset: asset.id):
        policy, shown = declared.registry.payload(asset, Policy), seen.get(asset.id, set())
        named = (
            *(("breaks the rule", rule.name) for rule in policy.rules),
            *(("is changed by", item.name) for item in policy.mutate),
            *(("has anything made by", item.name) for item in policy.generate),
        )
        for what, name in named:
            if name not in shown:
                yield f"no example {what} `{name}` of `{asset.id}`"


class _Example:
    """One example on its way.

    Args:
        pointer: to it, in the document of the policy.
    """

    def __init__(
        self,
        declared: Declared,
        policy: Asset,
        compiled: CompiledPolicy,
        effects: PolicyEffects,
        example: PolicyExample,
        pointer: str,
    ) -> None:
        self._declared = declared
        self._policy = policy
        self._compiled = compiled
        self._effects = effects
        self._example = example
        self._pointer = pointer
        self._problems: list[Diagnostic] = []

    def trial(self) -> Trial:
        """What comes of it."""
        policy, example = self._policy, self._example
        at = self._declared.locate(policy, self._pointer)
        given = self._assets("assets", example.assets)
        changed, made = self._assets("becomes", example.becomes), self._assets("generates", example.generates)
        expected = tuple(sorted(set(example.breaks)))
        if self._problems:  # what is no asset can be held against nothing
            return Trial(policy.id, example.name, at, expected, (), tuple(self._problems))
        outcome = self._effects.on(given)
        differences = list(compared(given, outcome, changed, made)) if not outcome.problems else []
        results = [*outcome.assets, *outcome.made]
        findings = [] if outcome.problems else list(_findings(self._compiled, results))
        found = tuple(
            Found(item.rule.name, None if item.asset is None else item.asset.id, item.message)
            for item in findings
            if item.answered and item.rule is not None
        )
        named = f"the example `{example.name}` of `{policy.id}`"
        problems = [*outcome.problems, *(self._told(item, named) for item in differences)]
        if not outcome.problems:
            problems += _surprises(policy, named, expected, found, findings, at)
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
        """The assets that the example declares in a part of it; what is wrong with them is a problem."""
        assets: list[Given] = []
        for number, value in enumerate(values):

            def place(inner: str, number: int = number) -> Position:
                return self._place(f"/{part}/{number}{inner}")

            asset, found = convert(value, self._declared.registry, place(""), place)
            self._problems += errors(found)
            if asset is not None:
                assets.append(Given(asset, left_out(value, asset, self._declared.registry)))
        return assets

    def _place(self, inner: str) -> Position:
        nowhere = self._policy.origin or Position("")
        return self._declared.locate(self._policy, self._pointer + inner) or nowhere

    def _told(self, item: Difference, named: str) -> Diagnostic:
        return Diagnostic(
            code=_NOT_AS_EXPECTED,
            what=f"`{item.asset}` does not come out as {named} says: {item.what}",
            why="; ".join(item.fields),
            fix=f"mend what the policy does, or `{item.part}` of the example",
            subject=self._policy.id,
            at=self._place(item.pointer),
        )


def _findings(compiled: CompiledPolicy, assets: Iterable[Asset]) -> Iterator[Finding]:
    members = []
    for asset in assets:
        found = list(compiled.judge(asset))
        yield from found
        if not any(item.rule is None for item in found) and compiled.matches(asset):
            members.append(asset)
    yield from compiled.judge_together(members)


def _surprises(
    policy: Asset,
    named: str,
    expected: tuple[str, ...],
    found: tuple[Found, ...],
    findings: Iterable[Finding],
    at: Position | None,
) -> Iterator[Diagnostic]:
    """What is otherwise than the example says."""

    def surprise(what: str, why: str, fix: str) -> Diagnostic:
        return Diagnostic(code=_NOT_AS_EXPECTED, what=what, why=why, fix=fix, subject=policy.id, at=at)

    for item in findings:
        if not item.answered:
            asked = "`match` or `exclude`" if item.rule is None else f"`{item.rule.name}`"
            of = "all of it" if item.asset is None else f"`{item.asset.id}`"
            yield surprise(
                f"{asked} has no answer in {named}",
                f"for {of}: {item.message}",
                "say in the policy what holds where this is missing: !has(payload.x) || payload.x > 0",
            )
    got = tuple(sorted({item.rule for item in found}))
    if got != expected:
        told = "; ".join(item.message for item in found)
        yield surprise(
            f"{named} breaks {_listed(got)}, not {_listed(expected)}",
            told and f"found: {told}",
            "mend the rule, or `breaks` of the example",
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "no rule"
