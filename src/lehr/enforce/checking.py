"""Asking the checks, with what they may look at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog

from lehr.base.digest import Digest
from lehr.enforce.governance import Governance
from lehr.enforce.state import View
from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import Diff
from lehr.model.types import Registry
from lehr.sdk.check import CheckPlugin, CheckRequest
from lehr.store import Records

log = structlog.get_logger()

_RETRY_SECONDS = 10.0


class Looking:
    """`lehr.sdk.check.CheckReader` for one turn.

    Attributes:
        quiet: assets that were found to have nothing to do; admission makes sure of it again.
    """

    def __init__(
        self,
        registry: Registry,
        governance: Governance,
        records: Records,
        now: float,
        look: Callable[[AssetId], Awaitable[tuple[Diff, Digest | None] | None]],
    ) -> None:
        """`look` compares another asset; it answers with its digest in the newest incarnation."""
        self._registry = registry
        self._governance = governance
        self._records = records
        self._now = now
        self._look = look
        self._looked: dict[AssetId, Diff | None] = {}
        self.quiet: dict[AssetId, Digest | None] = {}

    @property
    def registry(self) -> Registry:
        return self._registry

    def governing(self, type: str) -> Sequence[Asset]:
        return self._governance.of_type(type)

    def controls(self) -> Sequence[Control]:
        return self._governance.standing(self._now)

    def usage(self, reservation: Reservation) -> tuple[int, float | None]:
        return self._records.usage(reservation, self._now)

    async def diff(self, id: AssetId) -> Diff | None:
        if id not in self._looked:
            found = await self._look(id)
            self._looked[id] = None if found is None else found[0]
            if found is not None and found[0].empty:
                self.quiet[id] = found[1]
        return self._looked[id]


async def ask_all(
    checks: Sequence[CheckPlugin], view: View, diff: Diff, read: Looking
) -> tuple[Verdict, ...]:
    """Every check's verdicts, in order. A check that fails to answer waits."""
    assert view.asset is not None
    request = CheckRequest(view.target, view.asset, diff, view.governing, view.now)
    verdicts: list[Verdict] = []
    for check in checks:
        try:
            verdicts.extend(await check.check(request, read))
        except Exception as error:
            log.exception("check failed to answer", check=check.name, asset=view.key.id)
            verdicts.append(
                Verdict(
                    check.name,
                    allow=False,
                    reason="CheckFailed",
                    message=f"the check failed: {type(error).__name__}: {error}",
                    unblock="a check that answers",
                    until=view.now + _RETRY_SECONDS,
                )
            )
    return tuple(verdicts)
