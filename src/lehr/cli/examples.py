"""The examples of policies, tried: good ones come out clean, bad ones break the rules that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.base.documents import SUFFIXES
from lehr.base.errors import LehrError
from lehr.generate.conversion import convert
from lehr.generate.plain import place_of, read_assets
from lehr.model.asset import Asset
from lehr.model.incarnation import AssetChange
from lehr.model.policy import POLICY, Policy, PolicyExample
from lehr.model.types import Registry
from lehr.sdk.policy_rules import CompiledPolicy, Finding
from lehr.sdk.validator import Limits
from lehr.validate.policies import policy_is_not_understood
from lehr.validate.proposal import AssetView

_NOT_AS_EXPECTED = "TST001"

Locate = Callable[[Asset, str], Position | None]


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
    """

    policy: str
    example: str
    at: Position | None
    expected: tuple[str, ...]
    found: tuple[Found, ...]
    problems: tuple[Diagnostic, ...]

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
        raise LehrError(f"{path} cannot be read", why=str(error), fix="look at the path") from error
    outputs = [read_assets(name, content, "", registry) for name, content in contents.items()]
    policies = tuple(asset for output in outputs for asset in output.assets if asset.type == POLICY)
    diagnostics = [item for output in outputs for item in output.diagnostics]
    locate = locating(contents.get)
    for asset in policies:
        change = AssetChange(asset.id, None, asset)
        diagnostics += policy_is_not_understood(AssetView(change, registry, Limits(), locate, {}))
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
        for number, example in enumerate(policy.tests):
            yield _tried(declared, asset, compiled, example, f"/payload/tests/{number}")


def unbroken(declared: Declared) -> Iterator[tuple[str, str]]:
    """Policy and rule, for each rule that no example is to break."""
    for asset in sorted(declared.policies, key=lambda asset: asset.id):
        policy = declared.registry.payload(asset, Policy)
        broken = {name for example in policy.tests for name in example.breaks}
        yield from ((asset.id, rule.name) for rule in policy.rules if rule.name not in broken)


def _tried(
    declared: Declared, policy: Asset, compiled: CompiledPolicy, example: PolicyExample, pointer: str
) -> Trial:
    at = declared.locate(policy, pointer)
    assets, problems = _assets(declared, policy, example, f"{pointer}/assets")
    findings = [] if problems else list(_findings(compiled, assets))
    found = tuple(
        Found(item.rule.name, None if item.asset is None else item.asset.id, item.message)
        for item in findings
        if item.answered and item.rule is not None
    )
    expected = tuple(sorted(set(example.breaks)))
    if not problems:
        problems = list(_surprises(policy, example, expected, found, findings, at))
    return Trial(policy.id, example.name, at, expected, found, tuple(problems))


def _assets(
    declared: Declared, policy: Asset, example: PolicyExample, pointer: str
) -> tuple[list[Asset], list[Diagnostic]]:
    """The assets of an example, and why there are not all of them."""
    assets: list[Asset] = []
    problems: list[Diagnostic] = []
    nowhere = policy.origin or Position("")
    for number, value in enumerate(example.assets):

        def place(inner: str, number: int = number) -> Position:
            return declared.locate(policy, f"{pointer}/{number}{inner}") or nowhere

        asset, found = convert(value, declared.registry, place(""), place)
        problems += errors(found)
        if asset is not None:
            assets.append(asset)
    return assets, problems


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
    example: PolicyExample,
    expected: tuple[str, ...],
    found: tuple[Found, ...],
    findings: Iterable[Finding],
    at: Position | None,
) -> Iterator[Diagnostic]:
    """What is otherwise than the example says."""
    named = f"the example `{example.name}` of `{policy.id}`"

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
