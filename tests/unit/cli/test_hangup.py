"""SIGHUP: each is noticed, whenever it arrives."""

from __future__ import annotations

import asyncio

from lehr.cli.shutdown import Hangup


def test_a_signal_that_nobody_waits_for_yet_is_not_lost() -> None:
    async def main() -> None:
        hangup = Hangup()
        hangup()
        async with asyncio.timeout(5.0):
            await hangup.wait()
        following = asyncio.ensure_future(hangup.wait())
        await asyncio.sleep(0)
        assert not following.done(), "it counts once"
        hangup()
        async with asyncio.timeout(5.0):
            await following

    asyncio.run(main())
