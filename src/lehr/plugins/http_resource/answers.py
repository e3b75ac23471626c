"""What answers mean: documents, links, and errors with what to do. Pure."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import msgspec

from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.base.http_answer import Answer
from lehr.base.text import one_line
from lehr.sdk.secrets import Hidden

_MOST_MESSAGE = 200
_MOST_PAUSE = 600.0
_MESSAGE_FIELDS = ("message", "detail", "error", "title", "description", "reason")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = re.compile(r"\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT", re.ASCII)
_NEXT = re.compile(r"<([^<>\s]+)>((?:\s*;\s*[\w*-]+\s*=\s*(?:\"[^\"]*\"|[^\s;,\"]+))+)")
_IS_NEXT = re.compile(r";\s*rel\s*=\s*(?:\"(?:[^\"]* )?next(?: [^\"]*)?\"|next(?![\w-]))", re.IGNORECASE)


class UnknownOutcomeError(TransientError):
    """A write may or may not have been carried out."""


class UnansweredError(UnknownOutcomeError):
    """A write may still be carried out: there is no answer."""


def document_in(answer: Answer, place: str) -> Any:
    """The JSON in the body of an answer.

    Raises:
        TransientError: it is not JSON.
    """
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise TransientError(
            f"{place} does not answer with JSON",
            code="RES101",
            why=f"status {answer.status}, {len(answer.body):,} bytes of another kind",
            fix="check the URL, and what answers there",
        ) from None


def object_in(answer: Answer, place: str) -> dict[str, Any]:
    """The JSON object in the body of an answer.

    Raises:
        TransientError: it is anything else.
    """
    found = document_in(answer, place)
    if not isinstance(found, dict):
        raise TransientError(
            f"{place} does not answer with a JSON object",
            code="RES102",
            fix="declare the URL of one resource, or use `collection`",
        )
    return found


def strong_etag(answer: Answer) -> str:
    """The entity tag that a write can be made to depend on; empty for none, or a weak one."""
    tag = answer.headers.get("etag", "")
    return tag if re.fullmatch(r'"[!#-~]{0,200}"', tag) else ""


def next_link(answer: Answer) -> str:
    """The URL of the next page in the headers of an answer; empty for none."""
    for url, parameters in _NEXT.findall(answer.headers.get("link", "")[:8192]):
        if _IS_NEXT.search(parameters):
            return str(url)
    return ""


def retry_after(answer: Answer, now: float) -> float | None:
    """When the server wants to be asked again, at most ten minutes ahead; None if it does not state it."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return now + min(float(text[:9]), _MOST_PAUSE)
    moment = _date(text)
    return None if moment is None else min(max(moment, now), now + _MOST_PAUSE)


def _date(text: str) -> float | None:
    """The moment that an HTTP date is; None for other text."""
    found = _DATE.fullmatch(text)
    if found is None or found[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(found[number]) for number in (1, 3, 4, 5, 6))
    try:
        moment = dt.datetime(
            year, 1 + _MONTHS.index(found[2]), day, hour, minute, min(second, 59), tzinfo=dt.UTC
        )
    except ValueError:
        return None
    return moment.timestamp()


def read_error(answer: Answer, place: str, hidden: Hidden, now: float) -> LehrError:
    """The error for an answer to GET that is not a success."""
    if answer.status >= 500 and answer.status != 503:
        return TransientError(
            f"{place} answered {answer.status}", code="RES103", why=message_in(answer, hidden)
        )
    return _refused(answer, place, "read", hidden, now)


def write_error(
    answer: Answer, place: str, what: str, hidden: Hidden, now: float, *, again: bool
) -> LehrError:
    """The error for an answer to a write that is not a success.

    Args:
        what: what it should have done: `created`.
        again: whether it is harmless to repeat it.

    Returns:
        `UnknownOutcomeError` if it may have been carried out.
    """
    if answer.status == 412:
        return TransientError(
            f"{place} was not {what}: it has changed since it was compared",
            code="RES104",
            fix="Lehr compares it again",
        )
    if answer.status >= 500 and (answer.status != 503 or not again):
        return UnknownOutcomeError(
            f"{place} answered {answer.status}: it may have been {what} or not",
            code="RES105",
            why=message_in(answer, hidden),
        )
    return _refused(answer, place, what, hidden, now)


def message_in(answer: Answer, hidden: Hidden) -> str:
    """The server's own words, in one short line."""
    text = answer.body[:65_536].decode(errors="replace")
    try:
        found = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    for _ in range(2):  # {"error": {"message": ...}}
        found = _message_field(found)
        if isinstance(found, str):
            text = found
    line = one_line(hidden.shown(text))
    return line if len(line) <= _MOST_MESSAGE else f"{line[:_MOST_MESSAGE]}..."


def _message_field(found: Any) -> Any:
    if not isinstance(found, dict):
        return None
    return next((found[name] for name in _MESSAGE_FIELDS if found.get(name)), None)


def _refused(answer: Answer, place: str, what: str, hidden: Hidden, now: float) -> LehrError:
    status, why = answer.status, message_in(answer, hidden)
    if status in (429, 503):
        until = retry_after(answer, now)
        if until is not None:
            return WaitingError(f"{place} answered {status}", until=until, code="RES106", why=why)
        return TransientError(f"{place} answered {status}", code="RES107", why=why)
    if status in (408, 425):
        return TransientError(f"{place} answered {status}", code="RES108", why=why)
    if status in (401, 403):
        return StalledError(
            f"{place} may not be {what}: the server answered {status}",
            code="RES109",
            why=why,
            fix="correct `credentials`, or give their owner the permission on the server",
        )
    if 300 <= status < 400:
        target = one_line(hidden.shown(answer.headers.get("location", "")))[:_MOST_MESSAGE]
        return StalledError(
            f"{place} answered with a redirect ({status}), which is not followed",
            code="RES110",
            why=f"it leads to {target}" if target else "",
            fix="declare the URL that answers",
        )
    return StalledError(
        f"{place} was not {what}: the server answered {status}",
        code="RES111",
        why=why,
        fix="correct the asset, or what the server complains about; then run `lehr retry`",
    )
