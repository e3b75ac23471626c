"""Queries databases that must judge a change, once, before validation, which does no I/O itself."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.base.errors import LehrError, TransientError
from lehr.model.incarnation import AssetChange
from lehr.sdk.validator import Answers, DatabaseRule, Limits, LookUp


async def consult(limits: Limits, changes: Iterable[AssetChange], look_up: LookUp | None) -> Answers:
    """Answers of the databases whose rules concern new or changed assets; other databases are not queried.

    Args:
        look_up: None where no database can be queried.
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
                raise TransientError("no database can be queried here", code="PUB101")
            answers[rule] = await look_up(rule)
        except LehrError as error:
            answers[rule] = error
    return answers
