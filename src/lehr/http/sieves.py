"""Heavy filters, run in child processes: they take no processor time from answers or healing."""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from lehr.base.errors import TransientError
from lehr.base.log import Log
from lehr.http.limits import Limits
from lehr.http.sieve_process import Sift, read, write
from lehr.query.filters import Filter, Sifted
from lehr.sdk.store import Row

log = Log()

_START_SECONDS = 60.0
_SHARE_SECONDS = 0.25
_SPARE_SECONDS = 5.0
_TOO_LONG = "the filter takes too long for one asset"


class _EndedError(Exception):
    """The process ended or does not answer."""


class _Process:
    """One child process, and one question at a time."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "lehr.http.sieve_process"]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._questions, self._answers = self._child.stdin, self._child.stdout
        self._read(_START_SECONDS)

    def ask(self, question: Sift) -> Sifted:
        """The answer to a question.

        Raises:
            _EndedError: one asset has taken too long, or the process broke.
        """
        try:
            write(self._questions, msgspec.msgpack.encode(question))
        except OSError as error:
            raise _EndedError from error
        longest = question.seconds + question.most_seconds + _SPARE_SECONDS
        return msgspec.msgpack.decode(self._read(longest), type=Sifted)

    def close(self) -> None:
        """End it."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._questions, self._answers):
            with contextlib.suppress(OSError):  # unwritten data is lost, as it should be
                pipe.close()

    def _read(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self._answers], [], [], seconds)
        content = read(self._answers) if ready else b""
        if not content:
            raise _EndedError
        return content


class Sieves:
    """A child process for each asking thread, started when first needed.

    `sift` is a `lehr.query.asset_pages.Sieve`.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._idle: list[_Process] = []
        self._closed = False

    def sift(self, filter: Filter, rows: Sequence[Row], most_work: int) -> Sifted:
        """The results of a heavy filter on the first of `rows`.

        An asset that takes too long has no answer. The process itself stops it, except inside the library:
        a process that does not answer is ended, and the first asset is then tried alone.

        Raises:
            TransientError: no process can be started.
        """
        if not filter.heavy:
            return filter.sift(rows, most_work, lambda: False)
        sifted = self._ask(filter, rows, most_work) or self._ask(filter, rows[:1], most_work)
        return sifted or Sifted(1, (), most_work, 1, f"{rows[0].id}: {_TOO_LONG}")

    def _ask(self, filter: Filter, rows: Sequence[Row], most_work: int) -> Sifted | None:
        """An answer; None if one of `rows` takes too long."""
        process = self._taken()
        sent = [(row.id, row.type, row.body) for row in rows]
        question = Sift(filter.text, sent, most_work, _SHARE_SECONDS, self._limits.filter_seconds)
        try:
            answer = process.ask(question)
        except _EndedError:
            log.warning("killed a filter process that did not answer")
            process.close()
            return None
        except BaseException:
            process.close()
            raise
        if self._closed:
            process.close()
        else:
            self._idle.append(process)
        return answer

    def _taken(self) -> _Process:
        if self._idle:
            return self._idle.pop()
        try:
            return _Process()
        except (OSError, _EndedError) as error:
            why = str(error) or "it does not answer"
            raise TransientError("cannot start a process for this filter", code="HTP126", why=why) from error

    def close(self) -> None:
        """End the processes; busy ones end after their answer."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
