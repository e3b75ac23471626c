"""Monitor: no push while a query is out of bounds, while an alert fires, or while that is unknown.

Rollbacks pass.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from lehr.cel import compile_expression
from lehr.checks.durations import seconds_in, shown
from lehr.checks.governing_assets import Governing
from lehr.model.asset import AssetId
from lehr.model.decision import Verdict
from lehr.model.monitoring import Question, hold_of
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import AssetType
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest

_LEAST, _MOST = 5.0, 3600.0
_SOON_SECONDS = 5.0
_COUNT = Annotated[int, msgspec.Meta(ge=1, le=100)]


class Monitor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Push the selected assets only while an answer is good.

    Rollbacks are never delayed.

    Attributes:
        select: which assets.
        source: name of a source in the file of `lehr run --metrics`.
        query: in PromQL; for a source of type `http`, appended to its address; for a command, its last
            argument.
        alerts: instead of a query: labels of alerts of Prometheus, none of which may fire.
        value: where the value is in a JSON answer: a JSON pointer such as `/errors/rate`, or a CEL expression
            over `answer`. Each element of a list or object is a value.
        at: the same for the time of the value: Unix seconds or RFC 3339.
        at_least: the smallest good value.
        at_most: the largest good value. Without both bounds, values must be `true`.
        every: time between two looks: seconds, or text such as `30s`; from 5s to 1h.
        fresh: age at which an answer, or what it is about, no longer counts; more than `every`.
        steady: looks in a row that must be good after one that was not.
    """

    select: Selector
    source: Annotated[str, msgspec.Meta(min_length=1)]
    query: str = ""
    alerts: Annotated[dict[str, str], msgspec.Meta(min_length=1)] | None = None
    value: str = ""
    at: str = ""
    at_least: float | None = None
    at_most: float | None = None
    every: float | str = "30s"
    fresh: float | str = "2m"
    steady: _COUNT = 3

    def __post_init__(self) -> None:
        every, fresh = seconds_in("every", self.every), seconds_in("fresh", self.fresh)
        if not _LEAST <= every <= _MOST:
            raise ValueError(f"every must be from 5s to 1h, not {self.every!r}")
        if fresh <= every:
            raise ValueError(f"fresh must be more than every ({shown(self.every)}), not {self.fresh!r}")
        asks = self.query or self.value or self.at or self.at_least is not None or self.at_most is not None
        if self.alerts is not None and asks:
            raise ValueError("alerts takes no query, value, at, at_least and at_most: use two monitors")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("no value is good: at_least is greater than at_most")
        for name, place in (("value", self.value), ("at", self.at)):
            if place and not place.startswith("/"):
                _require_expression(name, place)

    def question(self) -> Question:
        """The question of this monitor."""
        return Question(
            self.source,
            self.query,
            None if self.alerts is None else tuple(sorted(self.alerts.items())),
            self.value,
            self.at,
            self.at_least,
            self.at_most,
            seconds_in("every", self.every),
            seconds_in("fresh", self.fresh),
            self.steady,
        )


def _require_expression(name: str, text: str) -> None:
    try:
        compile_expression(text, ("answer",))
    except ValueError as error:
        raise ValueError(
            f"{name} is neither a JSON pointer, which begins with /, nor CEL over `answer`: {error}"
        ) from error


MONITOR_TYPE = AssetType("lehr.Monitor", Monitor, governs=True)


class _Prepared(msgspec.Struct, frozen=True):
    select: Selector
    question: Question


class MonitorCheck(CheckPlugin):
    """Waits while a `lehr.Monitor` that selects the asset has no good answer."""

    name = "monitor"

    def __init__(self) -> None:
        self._monitors = Governing(
            MONITOR_TYPE, Monitor, lambda payload: _Prepared(payload.select, payload.question())
        )

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return [
            await _verdict(asset.id, prepared.question, request, read)
            for asset, prepared in list(self._monitors.selecting(request, read))
        ]


async def _verdict(id: AssetId, question: Question, request: CheckRequest, read: CheckReader) -> Verdict:
    check = f"{MonitorCheck.name}/{id}"
    if request.purpose is Purpose.ROLLBACK:
        # The newer content may be what is broken.
        return Verdict(check, allow=True, message=f"{id} does not delay rollbacks")
    history = await read.metric_history(question)
    if history is None:
        return Verdict(
            check,
            allow=False,
            reason=Reason.MONITOR_UNKNOWN,
            message=f"source {question.source} has not answered yet",
            unblock="wait for its first answer",
            until=request.now + _SOON_SECONDS,
        )
    hold = hold_of(question, history, request.now)
    if hold is None:
        return Verdict(check, allow=True, readings=(history.last,))
    return Verdict(
        check,
        allow=False,
        reason=Reason.MONITOR_UNKNOWN if hold.cause.missing else Reason.MONITOR_HOLDS,
        message=hold.message,
        unblock=f"{_fix(question, missing=hold.cause.missing)}; it is asked again every {question.every:g}s",
        until=hold.until,
        readings=(history.last,),
    )


def _fix(question: Question, *, missing: bool) -> str:
    if missing:
        return f"see that source {question.source} answers, or change the monitor"
    return (
        "wait until no such alert fires" if question.alerts is not None else "wait until the values are good"
    )
