"""Templates, and how values are shown in them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup, escape

from lehr.base.moments import span
from lehr.base.text import data_line
from lehr.model.reason import Reason

_LONGEST = 2000
"""Characters of a text that are shown."""

_NAMES = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
"""Categories of characters that a reader cannot see, or that change how others are read."""

_KEPT = "\n\t"

_TONES = {
    "converged": "good",
    "inert": "quiet",
    "turneddown": "quiet",
    "orphaned": "quiet",
    "good": "good",
    "completed": "good",
    "done": "good",
    "running": "busy",
    "pushing": "busy",
    "released": "busy",
    "validating": "busy",
    "next": "busy",
    "waiting": "wait",
    "holding": "wait",
    "paused": "wait",
    "held": "wait",
    "noturnyet": "wait",
    "idle": "quiet",
    "gone back": "bad",
}
_SHAPES = {"good": "●", "busy": "◐", "wait": "▲", "bad": "■", "quiet": "○"}
"""Readers who do not see colors go by these."""


def tone(status: str, reason: str = "") -> str:
    """How a status is shown: good, busy, wait, bad or quiet. An unknown one is bad: it needs a look."""
    if reason == Reason.AWAITING_RELEASE:
        return "wait"
    return _TONES.get(status.lower(), "bad")


def shape(status: str, reason: str = "") -> str:
    """The sign of a status."""
    return _SHAPES[tone(status, reason)]


def commands(text: str) -> Markup:
    """A sentence, with its commands set apart. They are between backticks."""
    parts = visible(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 and number < len(parts) - 1 else escape(part)
        for number, part in enumerate(parts)
    )


def without_checks(text: str, verdicts: Sequence[Mapping[str, Any]]) -> str:
    """A headline without the names of checks, which their verdicts have below it."""
    for verdict in verdicts:
        if not verdict["allow"]:
            text = text.replace(f": {verdict['check']}: ", ": ", 1)
    return text


def author(text: str) -> str:
    """The name of an author, without the address."""
    return text.partition(" <")[0] or text


def visible(value: object) -> str:
    """A text of anybody, in one safe form: bounded, and with escapes for what cannot be seen."""
    text = str(value)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"
    if shown.isprintable():
        return shown
    return "".join(_escaped(character) for character in shown)


def _escaped(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _NAMES:
        return character
    return f"\\u{{{ord(character):x}}}"


def pretty(value: object) -> str:
    """A document as JSON, over several lines."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def moment(text: str | None) -> datetime | None:
    """A moment as resources write it."""
    return None if not text else datetime.fromisoformat(text)


def path(*parts: str) -> str:
    """A path of the page. Slashes of ids stay."""
    return "/" + "/".join(quote(part, safe="/") for part in parts)


def query(**parameters: object) -> str:
    """The query of a link; empty without any."""
    given = {key: value for key, value in parameters.items() if value not in (None, "")}
    return f"?{urlencode(given)}" if given else ""


class Times:
    """Times as templates show them, relative to the moment at which a page is made.

    Args:
        now: wall-clock seconds.
    """

    def __init__(self, now: float) -> None:
        self._now = now

    def ago(self, text: str | None) -> str:
        """How long ago, or in how long: `5m ago`, `in 2h`."""
        at = moment(text)
        if at is None:
            return "never"
        seconds = self._now - at.timestamp()
        return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"

    def at(self, text: str | None) -> str:
        """A moment in UTC, to the second."""
        found = moment(text)
        return "" if found is None else f"{found:%Y-%m-%d %H:%M:%S}Z"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lehr.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=lambda value: (
            visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
        ),
    )
    for made in (tone, shape, path, query, data_line, pretty, commands, author, without_checks):
        environment.globals[made.__name__] = made
    return environment


def render(template: str, now: float, values: Mapping[str, Any]) -> str:
    """A page."""
    times = Times(now)
    as_of = f"{datetime.fromtimestamp(now, UTC):%H:%M:%S}Z"
    return _environment().get_template(template).render(**values, ago=times.ago, at=times.at, as_of=as_of)
