"""The rules of what production prints, for subjects that can make it `talk`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from lehr.base.errors import LehrError
from lehr.model.diff import Diff
from lehr.model.operation import Outcome, Result
from lehr.testing.conformance.asset_plugin.logs import logged
from lehr.testing.conformance.asset_plugin.subject import Aim, Subject, rule
from lehr.testing.conformance.rules import hold

_MOST_CHARACTERS = 8192
_MOST_LOGGED = 16_384
_LEAST_PART = 4
_MEGABYTES = 1 << 21

_LIKELY_LIMITS = (500, 512, 1000, 1024, 2000, 2048, 4000, 4096, 8000, 8192, 10_000, 16_000, 16_384, 65_536)
"""Bytes at which an excerpt of something long may be cut, from its beginning or from its end."""

_FOR_TERMINALS = b"\x1b[31m\x1b]0;title\a\x1b[2J\r\b\x9b\x7f" + "\u202e\u2028\x85".encode()
_NOT_UTF_8 = b"\xff\xfe\xc3\x28\0\xed\xa0\x80\xf0\x9f"


@rule
async def output_of_production_is_safe_to_show(subject: Subject) -> None:
    """Whatever production prints while it is unhealthy: reports are short, printable and without secrets.

    Tried where the subject can make production `talk`.
    """
    if subject.talk is None:
        return
    await subject.apply(subject.asset)
    for parts in _talks(subject.secret.encode()):
        with logged() as lines, subject.talk(parts):
            reported = await _reported(subject)
            await subject.restart()
            reported += await _reported(subject)
        for text in reported:
            hold(len(text) <= _MOST_CHARACTERS, f"messages are short, unlike {len(text)} characters")
            hold(text.isprintable(), f"messages are printable, unlike {text!r}")
        for line in lines:
            hold(len(line) <= _MOST_LOGGED, f"a line of a log is short, unlike {len(line)} characters")
        _hold_secret(subject.secret, (*subject.shown, *lines))
    await subject.apply(subject.asset)


def _talks(secret: bytes) -> Iterator[tuple[bytes, ...]]:
    """Production's output, each in parts that are written one after the other."""
    half = len(secret) // 2
    yield (
        *(secret[:half], secret[half:], b" is what I know\n"),
        *(_FOR_TERMINALS + secret, _FOR_TERMINALS, b"\n"),
        *(_NOT_UTF_8 + secret, _NOT_UTF_8, b"\n"),
    )
    yield (_cut_at_likely_limits(secret, half),)
    # Wherever something this long is cut, one of three has that place in the middle of a secret.
    word = secret + b"."
    for third in range(3):
        yield (b"." * (third * len(word) // 3) + word * (_MEGABYTES // len(word)),)


def _cut_at_likely_limits(secret: bytes, half: int) -> bytes:
    """Empty lines, so that nothing else takes the room, with a secret across each likely limit."""
    output = bytearray(b"\n" * (4 * max(_LIKELY_LIMITS)))
    for limit in _LIKELY_LIMITS:
        for middle in (limit, len(output) - limit):
            place = slice(middle - half, middle - half + len(secret))
            if not output[place].strip():  # a value half over another secret would not be one
                output[place] = secret
    return bytes(output)


async def _reported(subject: Subject) -> list[str]:
    """Everything that the plugin reports of production with output."""
    reported: list[str] = []
    found: Diff | None = None
    outcome: Outcome | None = None
    push = subject.begin(Aim(subject.asset))
    try:
        found = await subject.diff(subject.asset)
        reported += _texts(msgspec.to_builtins(found))
    except LehrError as error:
        reported += (error.what, error.why, error.fix)
    try:
        outcome = await subject.push(subject.asset, push=push)
        reported.append(outcome.message)
    except LehrError as error:
        reported += (error.what, error.why, error.fix)
    is_well = found is not None and found.empty and outcome is not None and outcome.result is Result.DONE
    hold(not is_well, "production that answers but is unhealthy shows in the diff or in the outcome")
    return [*reported, *push.messages]


def _texts(document: Any) -> Iterator[str]:
    """Every text within plain data."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(document, Sequence):
        for item in document:
            yield from _texts(item)


def _hold_secret(secret: str, shown: Sequence[str]) -> None:
    """Neither the secret nor a part of it that is worth something is shown."""
    size = max(_LEAST_PART, len(secret) // 3)
    parts = {secret[start : start + size] for start in range(len(secret) - size + 1)}
    for text in shown:
        hold(not any(part in text for part in parts), f"no part of a secret is shown, as in {text!r}")
