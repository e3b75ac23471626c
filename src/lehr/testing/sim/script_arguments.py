"""Allowed values for the words in capitals of a command's usage, and their conversion."""

from __future__ import annotations

import datetime as dt
import enum
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lehr.base.errors import LehrError
from lehr.model.asset import id_problem
from lehr.model.decision import Status
from lehr.model.release import ReleaseKind
from lehr.model.selector import parse_selector
from lehr.model.writes import Admit, Adopt, Finish, Publish, RecordDecision, WriteReleases
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.faults import LookFault, PushFault
from lehr.testing.sim.metrics import Answers

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = r"\d+(?:\.\d+)?(?:ms|[smhd])"


class Argument(NamedTuple):
    """Allowed values for a word in capitals.

    Attributes:
        meaning: for the reference.
        read: the value of a text; raises ValueError, whose message explains what is wrong.
    """

    meaning: str
    read: Callable[[str], Any]


def seconds_of(text: str) -> float:
    """Seconds that `1h30m` or `0.5s` means.

    Raises:
        ValueError: it means no length of time.
    """
    if not re.fullmatch(f"({_PART})+", text):
        raise ValueError(f"`{text}` is not a length of time; write 90s, 1h30m or 2d")
    parts = re.findall(r"([\d.]+)(ms|[smhd])", text)
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def _jump(text: str) -> float:
    sign = {"+": 1.0, "-": -1.0}.get(text[:1])
    if sign is None:
        raise ValueError(f"`{text}` has no sign for forward or back; write +1h or -5m")
    return sign * seconds_of(text[1:])


def _asset(text: str) -> str:
    if problem := id_problem(text):
        raise ValueError(f"`{text}` is not the id of an asset: {problem}")
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
        raise ValueError(f"`{text}` is not a moment; write 2026-01-10T12:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"`{text}` has no time zone; write {text}Z for UTC")
    return moment.timestamp()


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"`{text}` is not a number")
    return int(text)


def _incarnation(text: str) -> str:
    if not text.isdecimal() and text not in ("latest", "previous"):
        raise ValueError(f"`{text}` names no incarnation; write 3, latest or previous")
    return text


def _reason(text: str) -> str:
    if not re.fullmatch(r"([A-Z][a-z]*)+", text):
        raise ValueError(f"`{text}` is not a reason; reasons are written `LikeThis`")
    return text


def _path(text: str) -> str:
    if text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"`{text}` leads out of the source")
    return text


def _choice(known: Mapping[str, object]) -> Argument:
    """One of these words, whose value is the one below it."""

    def read(text: str) -> object:
        if text not in known:
            raise ValueError(f"`{text}` is not one of {', '.join(known)}")
        return known[text]

    return Argument(f"one of {', '.join(f'`{item}`' for item in known)}", read)


def _member(kind: type[enum.Enum]) -> Argument:
    return _choice({str(item.value): item for item in kind})


WRITES = {
    "commit": object,
    "publish": Publish,
    "admit": Admit,
    "finish": Finish,
    "record": RecordDecision,
    "adopt": Adopt,
    "release": WriteReleases,
}
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
    "STATUS": _member(Status),
    "REASON": Argument("a reason `LikeThis`, as `why` shows it", _reason),
    "WRITE": _choice(WRITES),
    "FENCING": _member(Fencing),
    "KIND": _member(ReleaseKind),
    "PUSHFAULT": _member(PushFault),
    "LOOKFAULT": _member(LookFault),
    "ANSWERS": _member(Answers),
}
"""By its name in usages."""
