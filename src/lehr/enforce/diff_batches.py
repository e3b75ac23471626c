"""Batches: routine diffs that are needed at the same time, in one call of the plugin."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.places import Places
from lehr.enforce.plugin_errors import FAILURES
from lehr.model.diff import Target
from lehr.sdk.plugin import AssetPlugin

log = Log()

MOST = 256
"""Diffs in one call."""


class _Request(NamedTuple):
    target: Target
    read: RecordingReader
    answer: asyncio.Future[object]


class Unanswered:
    """In place of a diff that the plugin has left out: compare that asset alone."""


UNANSWERED = Unanswered()


class Batches:
    """Collects diffs until they are flushed, and asks the plugin for all of them with one `diff_many`."""

    def __init__(self, plugin: AssetPlugin, places: Places, timeout: float) -> None:
        """Collect diffs of `plugin`.

        Args:
            places: a call takes one of these.
            timeout: seconds between two answers, after which the rest of a batch is given up.
        """
        self._plugin = plugin
        self._name = type(plugin).__name__
        self._places = places
        self._timeout = timeout
        self._requests: list[_Request] = []
        self._calls: dict[asyncio.Task[None], None] = {}  # ordered: they are cancelled in this order

    async def diff(self, target: Target, read: RecordingReader) -> object:
        """The plugin's answer: a diff, an error of its own, or `UNANSWERED`. Needs a `flush`."""
        request = _Request(target, read, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        if len(self._requests) >= MOST:
            self.flush()
        return await request.answer

    def flush(self) -> None:
        """Ask for everything that was collected."""
        requests = [request for request in self._requests if not request.answer.done()]
        self._requests = []
        if len(requests) == 1:
            requests.pop().answer.set_result(UNANSWERED)
        if requests:
            call = asyncio.create_task(self._call(requests), name=f"diffs of {self._name}")
            self._calls[call] = None
            call.add_done_callback(lambda call: self._calls.pop(call, None))

    async def stop(self) -> None:
        """Give up all calls; they have ended when this returns."""
        calls = tuple(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    async def _call(self, requests: Sequence[_Request]) -> None:
        await self._places.wait()
        try:
            await self._ask(requests)
        finally:
            self._places.give_back()

    async def _ask(self, requests: Sequence[_Request]) -> None:
        patience = _Patience(self._name, self._timeout, requests)
        try:
            await self._answer(requests, patience)
        except LehrError:
            pass  # each diff that is missing shows its own
        except FAILURES:
            log.exception("a batch of diffs failed; the rest is compared one by one", plugin=self._name)
        finally:
            patience.end()

    async def _answer(self, requests: Sequence[_Request], patience: _Patience) -> None:
        answers = self._plugin.diff_many([(request.target, request.read) for request in requests])
        try:
            async for index, answer in answers:
                if type(index) is not int or not 0 <= index < len(requests):
                    raise TypeError(f"it answered request {index!r} of {len(requests)}")
                patience.answered()
                if not requests[index].answer.done():
                    requests[index].answer.set_result(answer)
        finally:
            if isinstance(answers, AsyncGenerator):
                await answers.aclose()


class _Patience:
    """Gives up the call that runs in this task once it is silent for too long.

    From that moment its requests are compared one by one, even if the call takes long to end.
    """

    def __init__(self, name: str, seconds: float, requests: Sequence[_Request]) -> None:
        self._name = name
        self._seconds = seconds
        self._requests = requests
        self._call = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._look)

    def answered(self) -> None:
        self._last = self._loop.time()

    def end(self) -> None:
        """The call has ended: requests without an answer are left."""
        self._timer.cancel()
        for request in self._requests:
            if not request.answer.done():
                request.answer.set_result(UNANSWERED)

    def _look(self) -> None:
        due = self._last + self._seconds
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._look)
            return
        log.warning(
            "a batch of diffs was silent for too long; the rest is compared one by one",
            plugin=self._name,
            seconds=self._seconds,
        )
        self.end()
        if self._call is not None:
            self._call.cancel()
