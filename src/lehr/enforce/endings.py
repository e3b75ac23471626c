"""Why a loop that should run for ever has ended: without it, nothing would heal its assets."""

from __future__ import annotations

import asyncio

from lehr.base.errors import LehrError


def defect_of(
    task: asyncio.Task[None], meant: type[LehrError], *, may_end: bool = False
) -> BaseException | None:
    """The error with which the process must end, now that `task` has ended. None if the end was intended.

    The loop has handled the errors it could foresee. So an error that means "try again" to others
    ends the process like any other defect, under the name of the loop.

    Args:
        meant: errors that are reported unchanged: with them, a loop ends the process on purpose.
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
