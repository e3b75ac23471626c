"""The fewest commands that would unblock an asset."""

from __future__ import annotations

import msgspec

from lehr.dry_run.smallest_set import smallest_set
from lehr.dry_run.suppositions import Supposition
from lehr.dry_run.what_if import Supposed, WhatIf


class Unblocking(msgspec.Struct, frozen=True, kw_only=True):
    """The commands that would unblock an asset.

    Attributes:
        now: its next turn, without any command.
        then: its turn after the fewest commands that unblock it; null if no set was found.
        otherwise: its turn after all commands that could make a difference; null if a set was found.
        complete: whether every smaller set was tried; if none was found, every set of at most four.
        sets: sets of commands that were tried.
    """

    now: Supposed
    then: Supposed | None
    otherwise: Supposed | None
    complete: bool
    sets: int


async def unblocking(what_if: WhatIf) -> Unblocking:
    """Search for the fewest commands after which the next turn of the asset of `what_if` is not blocked.

    Raises:
        LehrError: the store cannot be read.
    """
    candidates = what_if.candidates()

    async def is_enough(chosen: tuple[Supposition, ...]) -> bool:
        return (await what_if.turn(chosen)).unblocked

    search = await smallest_set(candidates, is_enough)
    now = await what_if.turn(())
    then = otherwise = None
    if search.found is not None:
        then = await what_if.turn(search.found)
    else:
        otherwise = await what_if.turn(candidates)
    return Unblocking(now=now, then=then, otherwise=otherwise, complete=search.complete, sets=what_if.sets)
