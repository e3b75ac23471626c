"""Why a loop that should go on for ever has ended: nobody would heal what it was there for."""

from __future__ import annotations

import asyncio

from lehr.base.errors import LehrError


def defect_of(
    task: asyncio.Task[None], meant: type[LehrError], *, may_end: bool = False
) -> BaseException | None:
    """What whoever serves must end with, now that `task` has ended. None if that is as it should be.

    What its loop could foresee it has dealt with. So an error that means "try again" to others ends the
    process like any other defect, by the name of the loop.

    Args:
        meant: errors that are said as they are: with them, a loop ends the process on purpose.
        may_end: for a task that has one thing to do, and fails only by a defect.
    """
    name = task.get_name()
    if task.cancelled():
        return RuntimeError(f"the loop `{name}` was cancelled")
    error = task.exception()
    if error is None:
        return None if may_end else RuntimeError(f"the loop `{name}` has ended")
    if isinstance(error, LehrError) and not isinstance(error, meant):
        defect = RuntimeError(f"the loop `{name}` has ended: {error}")
        defect.__cause__ = error
        return defect
    return error
