"""Allowed values for the words in capitals of a command's usage, and their conversion."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from lehr.base.errors import LehrError
from lehr.model.asset import id_problem
from lehr.model.decision import Status
from lehr.model.selector import parse_selector
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.faults import LookFault, PushFault

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = r"\d+(?:\.\d+)?(?:ms|[smhd])"


class Argument(NamedTuple):
    """Allowed values for a word in capitals.

    Attributes:
        says: for the reference.
        read: the value of a text; raises ValueError, whose message explains what is wrong.
    """

    says: str
    read: Callable[[str], Any]


def seconds_of(text: str) -> float:
    """Seconds that `1h30m` or `0.5s` means.

    Raises:
        ValueError: it means no length of time.
    """
    if not re.fullmatch(f"({_PART})+", text):
        raise ValueError(f"`{text}` is no length of time; write 90s, 1h30m or 2d")
    parts = re.findall(r"([\d.]+)(ms|[smhd])", text)
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def _jump(text: str) -> float:
    sign = {"+": 1.0, "-": -1.0}.get(text[:1])
    if sign is None:
        raise ValueError(f"`{text}` does not say whether forward or back; write +1h or -5m")
    return sign * seconds_of(text[1:])


def _asset(text: str) -> str:
    if problem := id_problem(text):
        raise ValueError(f"`{text}` is no asset's id: {problem}")
    return text


def _selector(text: str) -> str:
    try:
        parse_selector(text)
    except LehrError as error:
        raise ValueError(error.what) from error
    return text


def _moment(text: str) -> float:
    try:
        moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f"`{text}` is no moment; write 2026-01-10T12:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"`{text}` does not say its time zone; write {text}Z for UTC")
    return moment.timestamp()


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"`{text}` is no number")
    return int(text)


def _incarnation(text: str) -> str:
    if not text.isdecimal() and text not in ("latest", "previous"):
        raise ValueError(f"`{text}` names no incarnation; write 3, latest or previous")
    return text


def _reason(text: str) -> str:
    if not re.fullmatch(r"([A-Z][a-z]*)+", text):
        raise ValueError(f"`{text}` is no reason; they are written `LikeThis`")
    return text


def _path(text: str) -> str:
    if text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"`{text}` leads out of the source")
    return text


def _one_of(values: Iterable[str]) -> Callable[[str], str]:
    known = tuple(str(value) for value in values)

    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"`{text}` is none of {', '.join(known)}")
        return text

    return read


def _choice(values: Iterable[str]) -> Argument:
    known = tuple(str(value) for value in values)
    return Argument(f"one of {', '.join(f'`{item}`' for item in known)}", _one_of(known))


WRITES = ("commit", "publish", "admit", "finish", "record", "adopt")
"""Writes at which a crash can be asked for; `commit` is any."""

ARGUMENTS: dict[str, Argument] = {
    "TIME": Argument("a length of time: `90s`, `1h30m`, `2d`", seconds_of),
    "JUMP": Argument("a length of time with its sign: `+1h`, `-5m`", _jump),
    "MOMENT": Argument("a moment: `2026-01-10T12:00Z`", _moment),
    "ASSET": Argument("the id of an asset", _asset),
    "OTHER": Argument("the id of another asset", _asset),
    "SELECTOR": Argument(
        "assets, as `lehr freeze` takes them: `web`, `web/*`, `label:team=web`, `all`", _selector
    ),
    "VALUE": Argument("what production holds: a text, or plain data in YAML (`{port: 80}`)", str),
    "TEXT": Argument("words; in quotes if several", str),
    "PATH": Argument("a file of the source: `assets/web.yaml`", _path),
    "NUMBER": Argument("a whole number", _number),
    "INCARNATION": Argument("`3`, `latest` or `previous`", _incarnation),
    "STATUS": _choice(Status),
    "REASON": Argument("a reason `LikeThis`, as `why` shows it", _reason),
    "WRITE": _choice(WRITES),
    "FENCING": _choice(item.value for item in Fencing),
    "PUSHFAULT": _choice(PushFault),
    "LOOKFAULT": _choice(LookFault),
}
"""By its name in usages."""
