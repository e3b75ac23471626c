"""Commands that are only supposed: what they would change of what a turn reads. Pure."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.control import Control, ControlKind
from lehr.model.evidence import RolloutCommand
from lehr.model.lifting import lifted_by
from lehr.model.selector import Selector, parse_selector

SUPPOSED = "supposed"
"""Who gives supposed commands, and why."""


class Verb(enum.StrEnum):
    """The commands that can be supposed, by their names."""

    RESUME = "resume"
    UNFREEZE = "unfreeze"
    UNPIN = "unpin"
    RETRY = "retry"
    APPROVE = "approve"
    OVERRIDE = "override"
    RELEASE = "rollout release"
    PROMOTE = "rollout promote"
    RESUME_ROLLOUT = "rollout resume"
    RETRY_ROLLOUT = "rollout retry"


LIFTED = {
    Verb.RESUME: ControlKind.PAUSE,
    Verb.UNFREEZE: ControlKind.FREEZE,
    Verb.UNPIN: ControlKind.PIN,
}
"""The kind of control that a command lifts."""

OF_ROLLOUTS = {
    Verb.PROMOTE: RolloutCommand.PROMOTE,
    Verb.RESUME_ROLLOUT: RolloutCommand.RESUME,
    Verb.RETRY_ROLLOUT: RolloutCommand.RETRY,
}
"""Commands about the rollout of a policy."""

_SHORT = {"release": Verb.RELEASE, "promote": Verb.PROMOTE}
_CHECK = "--check"
_WITHOUT_EFFECT = ("--reason", "--diff", "--for")
"""Options with a value that make no difference to a turn."""


class Supposition(msgspec.Struct, frozen=True, order=True):
    """A command about one asset.

    Attributes:
        of: a selector to lift controls of; the asset that configures a check; a rollout policy. Empty where
            the command is about the asset itself.
    """

    verb: Verb
    of: str = ""

    def command(self, id: AssetId) -> str:
        """The command to type, for the asset `id`. Words in capitals are placeholders."""
        asset, of = shlex.quote(id), shlex.quote(self.of)
        policy = f" {of}" if self.of else ""  # without one, the command is about the only policy
        match self.verb:
            case Verb.RESUME | Verb.UNFREEZE | Verb.UNPIN:
                return f"lehr {self.verb} {of}"
            case Verb.RETRY:
                return f"lehr retry {asset}"
            case Verb.RESUME_ROLLOUT:
                return f"lehr {self.verb}{policy}"
            case Verb.OVERRIDE:
                return f"lehr override {asset} --check {of} --reason TEXT"
            case Verb.APPROVE | Verb.RELEASE:
                return f"lehr {self.verb} {asset} --reason TEXT"
            case Verb.PROMOTE | Verb.RETRY_ROLLOUT:
                return f"lehr {self.verb}{policy} --reason TEXT"


def parse(text: str, asset: Asset, controls: Sequence[Control]) -> list[Supposition]:
    """The suppositions that `text` writes as a command: `unfreeze all`, `approve`, `override --check hours`.

    A command without a selector is about everything of its kind that holds the asset.

    Args:
        controls: the active ones.

    Raises:
        LehrError: it is not a command that can be supposed, or would have no effect on the asset.
    """
    words, check = _words(text)
    verb = next((item for item in Verb if words[: len(item.split())] == item.split()), None)
    if verb is None and words and words[0] in _SHORT:
        verb, words = _SHORT[words[0]], ["rollout", *words]
    if verb is None:
        raise _unknown(text)
    rest = words[len(verb.split()) :]
    if len(rest) > 1 or (check is not None and verb is not Verb.OVERRIDE):
        raise _unknown(text)
    of = rest[0] if rest else ""
    if verb in LIFTED:
        return _lifts(verb, of, asset, controls)
    if verb in OF_ROLLOUTS:
        return [Supposition(verb, of)]
    if verb is Verb.OVERRIDE:
        # `override CHECK` is short for `override ASSET --check CHECK`.
        check, of = (of, "") if check is None else (check, of)
        if not check:
            raise _unknown(text)
    if of and not parse_selector(of).matches(asset):
        raise LehrError(
            f"`{text}` is not about {asset.id}",
            code="DRY102",
            why=f"{of} does not select it",
            fix=f"leave {of} out",
        )
    return [Supposition(verb, check or "")]


def lifts_over(asset: Asset, controls: Iterable[Control]) -> list[Supposition]:
    """The commands that lift pauses, freezes and pins of an asset, each once."""
    kinds = {kind: verb for verb, kind in LIFTED.items()}
    found = (
        Supposition(kinds[item.kind], str(item.selector))
        for item in controls
        if item.kind in kinds and item.selector.matches(asset)
    )
    return list(dict.fromkeys(found))


def controls_under(
    suppositions: Iterable[Supposition],
    key: AssetKey,
    controls: Sequence[Control],
    now: float,
    approved: Digest | None = None,
) -> list[Control]:
    """The controls that would be active if these commands were given about an asset.

    Args:
        controls: those that are.
        now: wall-clock seconds.
        approved: the diff that an approval is for, if there is one.
    """
    found = list(controls)
    for item in suppositions:
        if item.verb in LIFTED:
            lifted = lifted_by(LIFTED[item.verb], parse_selector(item.of), found)
            found = [control for control in found if control not in lifted]
        elif item.verb is Verb.OVERRIDE:
            override = _control(ControlKind.OVERRIDE, key, now)
            found.append(replace(override, id=f"{override.id} {item.of}", check=AssetId(item.of)))
    if approved is not None:
        found.append(replace(_control(ControlKind.APPROVAL, key, now), diff_digest=approved))
    return found


def _control(kind: ControlKind, key: AssetKey, now: float) -> Control:
    return Control(
        id=SUPPOSED,
        kind=kind,
        partition=key.partition,
        selector=Selector(ids=(key.id,)),
        reason=SUPPOSED,
        actor=SUPPOSED,
        at=now,
    )


def _words(text: str) -> tuple[list[str], str | None]:
    """The words of a command without `lehr` and its options, and the value of `--check`."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise _unknown(text) from None
    found: list[str] = []
    check = None
    ahead = iter(words[1:] if words[:1] == ["lehr"] else words)
    for word in ahead:
        name, has_value, value = word.partition("=")
        if name in (_CHECK, *_WITHOUT_EFFECT):
            value = value if has_value else next(ahead, "")
            check = value if name == _CHECK else check
        elif word != "--yes":
            found.append(word)
    return found, check


def _lifts(verb: Verb, of: str, asset: Asset, controls: Sequence[Control]) -> list[Supposition]:
    kind = LIFTED[verb]
    if not of:
        found = [item for item in lifts_over(asset, controls) if item.verb is verb]
        whose = f"of {asset.id}"
    else:
        found = [Supposition(verb, of)] if lifted_by(kind, parse_selector(of), controls) else []
        whose = f"for {of}"
    if found:
        return found
    others = ", ".join(sorted({str(item.selector) for item in controls if item.kind is kind}))
    raise LehrError(
        f"no {kind} {whose} is active",
        code="DRY103",
        why=f"active ones are for: {others}" if others else f"no {kind} is active",
    )


def _unknown(text: str) -> LehrError:
    return LehrError(
        f"{text!r} is not a command that can be supposed",
        code="DRY101",
        fix="write one of: unfreeze, resume, unpin, retry, approve, override --check ID, rollout release,"
        " rollout promote, rollout resume, rollout retry",
    )
