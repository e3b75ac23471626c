"""Databases that are to judge a change are asked once, before validation, which itself asks nobody."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.base.errors import LehrError, TransientError
from lehr.model.incarnation import AssetChange
from lehr.sdk.validator import Answers, DatabaseRule, Limits, LookUp


async def consult(limits: Limits, changes: Iterable[AssetChange], look_up: LookUp | None) -> Answers:
    """What the databases say whose rules are about assets that are new or changed; of others, nothing.

    Args:
        look_up: None where no database can be asked.
    """
    if not limits.databases:
        return {}
    types = {change.after.type for change in changes if change.after is not None}
    answers: dict[DatabaseRule, frozenset[str] | LehrError] = {}
    for rule in limits.databases:
        if rule.type not in types:
            continue
        try:
            if look_up is None:
                raise TransientError("no database can be asked here", code="PUB101")
            answers[rule] = await look_up(rule)
        except LehrError as error:
            answers[rule] = error
    return answers
