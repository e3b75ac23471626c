"""The child process that heavy filters run in: `python -m lehr.http.sieve_process`.

Reads questions from stdin and writes answers to stdout: a length in four bytes, then MessagePack. It ends
with its parent, at the end of stdin.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import IO

import msgspec

from lehr.base.clock import SystemClock
from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.query.filters import Filter, TookTooLongError
from lehr.sdk.store import Row

NICE = 10
MOST_MEMORY = 2 * 2**30

_LENGTH = struct.Struct(">I")
_KEPT = 64


class Sift(msgspec.Struct, frozen=True, array_like=True):
    """A question: which of `rows` match `filter`.

    Attributes:
        rows: id, type and body of each.
        most_work, seconds: after which to answer with the rows checked so far.
        most_seconds: for one asset, which then has no answer.
    """

    filter: str
    rows: Sequence[tuple[str, str, bytes]]
    most_work: int
    seconds: float
    most_seconds: float


def write(stream: IO[bytes], content: bytes) -> None:
    """Write a message."""
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def read(stream: IO[bytes]) -> bytes:
    """Read a message; empty at the end."""
    head = stream.read(_LENGTH.size)
    return stream.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""


def _too_long(_number: int, _frame: object) -> None:
    raise TookTooLongError("the filter takes too long")


def main() -> None:
    """Answer until there are no more questions."""
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _too_long)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # signals are for the parent; its end closes stdin
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    decoder, clock = msgspec.msgpack.Decoder(Sift), SystemClock()
    filter_of = lru_cache(maxsize=_KEPT)(Filter)
    write(answers, b"ready")
    while content := read(asked):
        question = decoder.decode(content)
        condition = filter_of(question.filter)
        ends = clock.monotonic() + question.seconds

        def enough(limit: float = question.most_seconds, ends: float = ends) -> bool:
            signal.setitimer(signal.ITIMER_REAL, limit)  # checked between assets
            return clock.monotonic() > ends

        rows = [Row(AssetId(id), type, body, Digest(""), None) for id, type, body in question.rows]
        enough()
        answer = condition.sift(rows, question.most_work, enough)
        signal.setitimer(signal.ITIMER_REAL, 0)
        write(answers, msgspec.msgpack.encode(answer))


if __name__ == "__main__":
    main()
