"""Validators as messages: changes, what is asked for, and problems, and back. Pure.

Whatever comes from a plugin may be wrong: `GarbageError` names the problem, and nothing else is raised.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NoReturn

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.base.text import one_line
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
from lehr.model.references import Mention
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.check_wire import asset_message, asset_of, referrer_message, referrer_of
from lehr.plugins.remote.wire import GarbageError, Shown
from lehr.sdk.asked_validator import Finding
from lehr.sdk.check import Referrer

_ERROR, _WARNING = m.Problem.SEVERITY_ERROR, m.Problem.SEVERITY_WARNING
_CODE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_MOST_PROBLEMS = 1_000
_MOST_CHARACTERS = 8_000
_MOST_POINTER = 1_000
_FRAME_BYTES = 16


class GivenPlace(Position, frozen=True):
    """A place in an asset of a call. Only Lehr knows the file and the line.

    Attributes:
        asset: id of the asset.
        pointer: JSON pointer into its document.
    """

    asset: str = ""
    pointer: str = ""


def change_message(change: AssetChange) -> m.AssetChange:
    """`change` as it is sent."""
    return m.AssetChange(
        id=change.id,
        before=None if change.before is None else asset_message(change.before),
        after=None if change.after is None else asset_message(change.after),
    )


def change_of(message: m.AssetChange) -> AssetChange:
    """The change in `message`."""
    return AssetChange(
        AssetId(message.id),
        asset_of(message.before) if message.HasField("before") else None,
        asset_of(message.after) if message.HasField("after") else None,
    )


def divided(changes: Iterable[AssetChange], most_bytes: int) -> Iterator[list[m.AssetChange]]:
    """`changes` as they are sent, in parts of at most this size; a larger one is alone."""
    part: list[m.AssetChange] = []
    size = 0
    for change in changes:
        message = change_message(change)
        bytes_of = message.ByteSize() + _FRAME_BYTES
        if part and size + bytes_of > most_bytes:
            yield part
            part, size = [], 0
        part.append(message)
        size += bytes_of
    if part:
        yield part


def referrers_message(id: AssetId, found: Iterable[tuple[Asset, Mention]]) -> m.Referrers:
    """References to an asset as they are sent."""
    assets: dict[AssetId, Asset] = {}
    mentions: dict[AssetId, list[Mention]] = {}
    for asset, mention in found:
        assets[asset.id] = asset
        mentions.setdefault(asset.id, []).append(mention)
    referrers = (Referrer(asset, tuple(mentions[asset.id])) for asset in assets.values())
    return m.Referrers(id=id, referrers=map(referrer_message, referrers))


def mentions_of(message: m.Referrers) -> list[tuple[Asset, Mention]]:
    """The references in `message`."""
    found = map(referrer_of, message.referrers)
    return [(referrer.asset, mention) for referrer in found for mention in referrer.mentions]


def problem_message(diagnostic: Diagnostic) -> m.Problem:
    """`diagnostic` as it is sent. Its place is one of `GivenPlace`, or only its subject."""
    at = diagnostic.at
    asset, pointer = (at.asset, at.pointer) if isinstance(at, GivenPlace) else (diagnostic.subject, "")
    return m.Problem(
        severity=_WARNING if diagnostic.severity is Severity.WARNING else _ERROR,
        code=diagnostic.code,
        asset=asset,
        pointer=pointer,
        what=diagnostic.what,
        why=diagnostic.why,
        fix=diagnostic.fix,
    )


def findings_of(messages: Sequence[m.Problem], ids: Collection[str], shown: Shown) -> list[Finding]:
    """The problems in `messages`.

    Args:
        ids: of the assets that the plugin was shown.

    Raises:
        GarbageError: they are not such as a validator may find.
    """
    if len(messages) > _MOST_PROBLEMS:
        _refuse(f"{len(messages):,} problems; {_MOST_PROBLEMS:,} are allowed")
    return [_finding(message, ids, shown) for message in messages]


def _finding(message: m.Problem, ids: Collection[str], shown: Shown) -> Finding:
    if not _CODE.fullmatch(message.code):
        _refuse(f"a problem with the code {_short(message.code)}")
    if message.asset and message.asset not in ids:
        _refuse(f"a problem of the asset {_short(message.asset)}, which it was not shown")
    if message.pointer and not (message.asset and message.pointer.startswith("/")):
        _refuse(f"a problem at {_short(message.pointer)}, which does not point into an asset")
    if len(message.pointer) > _MOST_POINTER:
        _refuse(f"a pointer of {len(message.pointer):,} characters")
    what, why, fix = (_text(text, shown) for text in (message.what, message.why, message.fix))
    if not what:
        _refuse("a problem without a description")
    return Finding(
        code=shown(message.code),
        severity=Severity.WARNING if message.severity == _WARNING else Severity.ERROR,
        what=what,
        why=why,
        fix=fix,
        asset=AssetId(message.asset) if message.asset else None,
        pointer=message.pointer,
    )


def _text(text: str, shown: Shown) -> str:
    if len(text) > _MOST_CHARACTERS:
        _refuse(f"a text of {len(text):,} characters")
    return shown(one_line(text))


def _short(text: str) -> str:
    return repr(text[:100])


def _refuse(what: str) -> NoReturn:
    raise GarbageError(what)
