"""Checks as messages: pushes, questions, facts and verdicts, and back. Pure.

Whatever comes from a plugin may be wrong: `GarbageError` names the problem, and nothing else is raised.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NoReturn

import msgspec

from lehr.base.errors import LehrError
from lehr.base.text import one_line
from lehr.model.asset import Asset, AssetId, id_problem, make_asset
from lehr.model.control import Control
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import Diff
from lehr.model.monitoring import MetricHistory, Question, Reading
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.model.references import Mention
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.wire import (
    GarbageError,
    Shown,
    diff_of,
    difference_message,
    target_message,
    target_of,
    trouble_message,
)
from lehr.sdk.check import CheckRequest, Referrer

_ALLOW = m.Verdict.DECISION_ALLOW
_WAIT = m.Verdict.DECISION_WAIT
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,99}")
_LIMIT = re.compile(r"(/[A-Za-z0-9._:@=,-]+)*")
_MOST_CHARACTERS = 8_000
_MOST_VERDICTS = 1_000


class _Body(msgspec.Struct):
    payload: msgspec.Raw
    addons: dict[str, msgspec.Raw] = {}


_body = msgspec.json.Decoder(_Body)


def push_message(check: str, request: CheckRequest) -> m.CheckRequest:
    """The push that a check judges, as it is sent; without facts."""
    return m.CheckRequest(
        check=check,
        target=target_message(request.target),
        asset=asset_message(request.asset),
        newest=asset_message(request.newest),
        difference=difference_message(request.diff),
        governing=request.governing,
        now=request.now,
        purpose=request.purpose,
    )


def push_of(message: m.CheckRequest) -> CheckRequest:
    """The push in `message`."""
    return CheckRequest(
        target_of(message.target),
        asset_of(message.asset),
        diff_of(message.difference, str),
        message.governing,
        message.now,
        asset_of(message.newest),
        Purpose(message.purpose),
    )


def asset_message(asset: Asset) -> m.Asset:
    """`asset` as it is written."""
    body = _body.decode(asset.body)
    versions = {name: asset.version(name) for name in body.addons}
    return m.Asset(
        id=asset.id,
        exists=True,
        type=asset.type,
        version=asset.version(asset.type),
        payload=bytes(body.payload),
        addons={name: bytes(value) for name, value in body.addons.items()},
        addon_versions={name: version for name, version in versions.items() if version > 1},
    )


def asset_of(message: m.Asset) -> Asset:
    """The asset in `message`, without where it comes from."""
    versions = dict(message.addon_versions)
    if message.version > 1:
        versions[message.type] = message.version
    return make_asset(
        AssetId(message.id),
        message.type,
        msgspec.json.decode(message.payload),
        {name: msgspec.json.decode(value) for name, value in message.addons.items()},
        versions=versions or None,
    )


def reservation_message(reservation: Reservation) -> m.Reservation:
    """`reservation` as it is sent."""
    return m.Reservation(
        key=reservation.key, limit=reservation.limit, window=reservation.window, once=reservation.once
    )


def reservation_of(message: m.Reservation) -> Reservation:
    """The reservation in `message`.

    Raises:
        GarbageError: it names no limit.
    """
    window = message.window if message.HasField("window") else None
    if not message.key or message.limit < 1:
        _refuse("a reservation without a key or a limit")
    if len(message.key) > _MOST_CHARACTERS:
        _refuse("a reservation with an endless key")
    if window is not None and not 0 < window < math.inf:
        _refuse(f"a reservation with the window {window}")
    return Reservation(message.key, message.limit, window, message.once and window is not None)


def question_of(message: m.CheckQuestion) -> Question:
    """The question about production in `message`.

    Raises:
        GarbageError: it is not one.
    """
    return _read(message.metric_history, Question, "a question about production")  # type: ignore[no-any-return]


def control_message(control: Control, *, selects: bool) -> m.Control:
    """`control` as it is sent."""
    return m.Control(
        id=control.id,
        kind=control.kind,
        selects=selects,
        reason=control.reason,
        actor=control.actor,
        check=control.check or "",
        record=msgspec.json.encode(control),
    )


def referrer_message(referrer: Referrer) -> m.Referrer:
    """`referrer` as it is sent."""
    return m.Referrer(asset=asset_message(referrer.asset), mentions=msgspec.json.encode(referrer.mentions))


def referrer_of(message: m.Referrer) -> Referrer:
    """The referrer in `message`."""
    return Referrer(asset_of(message.asset), msgspec.json.decode(message.mentions, type=tuple[Mention, ...]))


def usage_message(usage: tuple[int, float | None]) -> m.Usage:
    """How many count, and until when, as it is sent."""
    return m.Usage(count=usage[0], until=usage[1])


def diff_message(diff: Diff | None) -> m.Difference | None:
    """`diff` as it is sent; None if there is no such asset."""
    return None if diff is None else difference_message(diff)


def history_message(history: MetricHistory | None) -> bytes:
    """`history` as it is sent; empty before the first look."""
    return b"" if history is None else msgspec.json.encode(history)


def verdict_message(verdict: Verdict) -> m.Verdict:
    """`verdict` as it is sent."""
    return m.Verdict(
        check=verdict.check,
        decision=_ALLOW if verdict.allow else _WAIT,
        reason=verdict.reason,
        message=verdict.message,
        unblock=verdict.unblock,
        until=verdict.until,
        wait_for=verdict.wait_for,
        reservations=map(reservation_message, verdict.reservations),
        overridden=verdict.overridden or "",
        readings=map(msgspec.json.encode, verdict.readings),
    )


def verdicts_of(
    messages: Sequence[m.Verdict], check: str, request: CheckRequest, overrides: Collection[str], shown: Shown
) -> list[Verdict]:
    """The verdicts in `messages`.

    Args:
        overrides: ids of those that the check was given, and that select the asset of the push.

    Raises:
        GarbageError: they are not such as this check may give.
    """
    if len(messages) > _MOST_VERDICTS:
        _refuse(f"{len(messages):,} verdicts")
    found = [_verdict(message, check, request, overrides, shown) for message in messages]
    if len({verdict.check for verdict in found}) < len(found):
        _refuse("two verdicts about the same limit")
    return found


def _verdict(
    message: m.Verdict, check: str, request: CheckRequest, overrides: Collection[str], shown: Shown
) -> Verdict:
    allow = message.decision == _ALLOW  # any other one waits, also one that is not known
    if not message.check.startswith(check) or not _LIMIT.fullmatch(message.check, len(check)):
        _refuse(f"a verdict of {_short(message.check)}, not of {check}")
    if message.overridden and not (allow and message.overridden in overrides):
        _refuse("a verdict that is overridden by nothing")
    texts = [_text(text, shown) for text in (message.message, message.unblock)]
    usual = ("", "") if allow else ("the check does not explain itself", "read the log of the plugin")
    return Verdict(
        shown(message.check),
        allow,
        _reason(message.reason, allow=allow),
        texts[0] or usual[0],
        texts[1] or usual[1],
        _until(message, request.now),
        () if allow else _others(message.wait_for, request.asset.id),
        tuple(map(reservation_of, message.reservations)) if allow else (),
        message.overridden or None,
        tuple(_read(reading, Reading, "a reading") for reading in message.readings),
    )


def _reason(text: str, *, allow: bool) -> str:
    if not text:
        return Reason.ALLOWED if allow else Reason.CHECK_FAILED
    if not _REASON.fullmatch(text) or (text == Reason.ALLOWED and not allow):
        _refuse(f"the reason {_short(text)}")
    return text


def _until(message: m.Verdict, now: float) -> float | None:
    if not message.HasField("until"):
        return None
    if not now < message.until < math.inf:
        _refuse(f"a verdict until {message.until}, which is not later than now")
    return message.until


def _others(ids: Iterable[str], own: AssetId) -> tuple[AssetId, ...]:
    found = tuple(AssetId(id) for id in dict.fromkeys(ids))
    for id in found:
        if id == own or id_problem(id) is not None:
            _refuse(f"a verdict that waits for the asset {_short(id)}")
    return found


def _text(text: str, shown: Shown) -> str:
    if len(text) > _MOST_CHARACTERS:
        _refuse(f"a text of {len(text):,} characters")
    return shown(one_line(text))


def _short(text: str) -> str:
    return repr(text[:100])


def _read(content: bytes, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as error:
        _refuse(f"{what} that cannot be read: {error}")


def failed_fact(question: m.CheckQuestion, error: LehrError) -> m.CheckFact:
    """The fact that a question has no answer."""
    return m.CheckFact(question=question, trouble=trouble_message(error))


def _refuse(what: str) -> NoReturn:
    raise GarbageError(what)
