"""Asks the validators of plugins, once, before validation, which does no I/O itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from lehr.base.blocking import Blocking
from lehr.base.errors import LehrError
from lehr.model.incarnation import AssetChange
from lehr.sdk.asked_validator import Answered, AskedValidator
from lehr.sdk.validator import Proposal


async def ask(
    validators: Sequence[AskedValidator],
    changes: Sequence[AssetChange],
    propose: Callable[[], Proposal],
    blocking: Blocking,
) -> tuple[Answered, ...]:
    """Answers of the validators that changes concern, in their order; others are not asked.

    Args:
        propose: makes the proposal, for whatever they look up. Not called if none is asked.

    Raises:
        LehrError: the proposal cannot be read.
    """
    if not validators:
        return ()
    concerned = await blocking.run(_concerned, validators, changes)
    if not concerned:
        return ()
    proposal = await blocking.run(propose)
    asking = [asyncio.ensure_future(validator.ask(proposal, blocking)) for validator in concerned]
    try:
        found = await asyncio.gather(*asking)
    finally:
        for task in asking:
            task.cancel()
    return tuple(
        Answered(
            validator.name, answer if isinstance(answer, LehrError) else tuple(answer), validator.when_down
        )
        for validator, answer in zip(concerned, found, strict=True)
    )


def _concerned(
    validators: Sequence[AskedValidator], changes: Sequence[AssetChange]
) -> Sequence[AskedValidator]:
    return [validator for validator in validators if any(map(validator.concerns, changes))]
