"""SIGHUP has the source looked at, each time that it comes, whatever became of the look before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lehr.base.errors import TransientError
from lehr.cli.foreground_run import _look_when
from lehr.cli.shutdown import Hangup
from lehr.control.service_manager import ServiceManager


class Plane:
    """A control plane whose looks at the source fail in one way after the other."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.looked = asyncio.Event()

    async def refresh(self) -> None:
        self.looked.set()
        if self.failures:
            raise self.failures.pop(0)


def test_a_look_that_fails_in_any_way_is_told_and_the_next_one_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def main() -> None:
        hangup = Hangup()
        plane: Any = Plane(TransientError("no connection"), LookupError("a defect"))
        looking = asyncio.create_task(_look_when(hangup, plane, ServiceManager({})))
        for _ in range(3):
            await asyncio.sleep(0)
            hangup()
            await asyncio.wait_for(plane.looked.wait(), 20.0)
            plane.looked.clear()
        assert not looking.done()
        looking.cancel()

    asyncio.run(main())
    told = capsys.readouterr().err
    assert "no connection" in told
    assert "LookupError: a defect" in told
