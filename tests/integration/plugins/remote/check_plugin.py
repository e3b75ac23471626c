"""The checks of Lehr, and one of its own, in a process; with a fault, if the first argument names one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any, NoReturn

from lehr.checks import CHECKS
from lehr.checks import TYPES as CHECK_TYPES
from lehr.model.asset import AssetId
from lehr.model.decision import Reservation, Verdict
from lehr.plugins.grpc_library import grpc
from lehr.plugins.remote import messages as m
from lehr.plugins.remote import server
from lehr.plugins.remote.service import Service
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest
from tests.integration.plugins.remote.line_plugin import TYPES, LinePlugin

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
SECRET = os.environ.get("PASSWORD", "")


class OnCall(CheckPlugin):
    """Waits while nobody is on call."""

    name = "on-call"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        """As the assets of type `example.OnCall` have it; fails with a bug of its own where one is broken."""
        on_call = [read.payload(asset, dict) for asset in read.governing("example.OnCall")]
        if not on_call:
            return []
        if all(item["people"] for item in on_call):
            return [Verdict(self.name, allow=True)]
        unblock = "add somebody to `people`"
        return [Verdict(self.name, False, "NobodyOnCall", "nobody is on call", unblock)]


class Crowded(CheckPlugin):
    """Asks every kind of question, and answers with what it was told."""

    name = "crowded"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        """Waits for the assets that differ, and sets a share aside."""
        others = [AssetId("quiet"), AssetId("busy"), AssetId("absent")]
        await read.look_at(others)
        found = {id: await read.diff(id) for id in others}
        count, _until = read.usage(Reservation("crowd", 7))
        own = read.asset(request.asset.id)
        facts = {
            "differ": sorted(id for id, diff in found.items() if diff is not None and not diff.empty),
            "absent": sorted(id for id, diff in found.items() if diff is None),
            "count": count,
            "own": None if own is None else own.type,
            "nobody": read.asset(AssetId("nobody")) is None,
            "referrers": len(read.referrers()),
            "controls": len(read.controls()),
            "dependencies": len(read.dependencies(request.asset)),
            "governing": len(read.governing("lehr.Freeze")),
        }
        return [Verdict(self.name, False, "Crowded", json.dumps(facts, sort_keys=True), "wait")]


def waiting(**changes: Any) -> m.Verdict:
    """A verdict that waits."""
    usual = {"check": "on-call", "decision": m.Verdict.DECISION_WAIT, "reason": "Why", "message": "no"}
    return m.Verdict(**{**usual, **changes})


def allowing(**changes: Any) -> m.Verdict:
    """A verdict that allows."""
    return m.Verdict(**{"check": "on-call", "decision": m.Verdict.DECISION_ALLOW, **changes})


VERDICTS = {
    "unknown-decision": [allowing(decision=99, reservations=[m.Reservation(key="a", limit=1)])],
    "unset-decision": [allowing(decision=0)],
    "other-check": [allowing(check="freeze")],
    "prefix-check": [allowing(check="on-call-too")],
    "same-limit": [allowing(), allowing()],
    "many": [allowing(check=f"on-call/{number}") for number in range(1001)],
    "no-word": [waiting(reason="no words")],
    "allowed-waits": [waiting(reason="Allowed")],
    "until-past": [waiting(until=1.0)],
    "until-never": [waiting(until=float("inf"))],
    "until-nan": [waiting(until=float("nan"))],
    "waits-for-itself": [waiting(wait_for=["web"])],
    "waits-for-garbage": [waiting(wait_for=["no id"])],
    "no-limit": [allowing(reservations=[m.Reservation(key="a")])],
    "no-key": [allowing(reservations=[m.Reservation(limit=1)])],
    "no-window": [allowing(reservations=[m.Reservation(key="a", limit=1, window=0.0)])],
    "no-override": [allowing(overridden="c1")],
    "no-reading": [allowing(readings=[b"{"])],
    "long": [waiting(message="x" * 8_001)],
    "huge": [waiting(message="x" * 5_000_000)],
    "silent": [waiting(message="", reason="")],
    "tells-secret": [waiting(message=f"{SECRET} is wrong", unblock=f"change {SECRET}", reason="Why")],
}


class FaultyService(Service):
    """Answers wrongly."""

    def __init__(self, served: Any) -> None:
        super().__init__(served)
        self.asked = 0

    async def check(self, request: m.CheckRequest, context: Any) -> m.CheckResponse:  # noqa: C901, PLR0911, PLR0912
        self.asked += 1
        if FAULT in VERDICTS:
            return m.CheckResponse(mark=request.mark, verdicts=m.Verdicts(verdicts=VERDICTS[FAULT]))
        match FAULT:
            case "hangs":
                await asyncio.sleep(600)
            case "dies":
                _die()
            case "status":
                await context.abort(grpc.StatusCode.INTERNAL, f"the password is {SECRET}")
            case "other-answer":
                return m.CheckResponse(mark=b"another", verdicts=m.Verdicts())
            case "no-result":
                return m.CheckResponse(mark=request.mark)
            case "trouble":
                trouble = m.Trouble(kind=99, what=f"{SECRET} is wrong", fix="change it", code="X1")  # type: ignore[arg-type]
                return m.CheckResponse(mark=request.mark, trouble=trouble)
            case "slow":
                await asyncio.sleep(0.3)
                return _need(request, m.CheckQuestion(governing=str(self.asked)))
            case "asks-for-ever":
                return _need(request, m.CheckQuestion(asset=f"asset-{self.asked}"))
            case "asks-again":
                return _need(request, m.CheckQuestion(controls=True))
            case "asks-nothing":
                return _need(request)
            case "asks-much":
                return _need(request, *(m.CheckQuestion(governing=str(index)) for index in range(2001)))
            case "asks-unknown":
                return _need(request, m.CheckQuestion())
            case "always-allows":
                return self._asked_once(request)
            case "takes-override":
                if not request.facts:
                    return _need(request, m.CheckQuestion(controls=True))
                return _said(request, allowing(overridden="c1"))
            case "counts":
                return _said(request, allowing(check=f"on-call/{self.asked}"))
            case "remembers":
                return _said(request, allowing())
            case "asks-garbage":
                return _need(request, m.CheckQuestion(metric_history=b"["))
        return await super().check(request, context)

    def _asked_once(self, request: m.CheckRequest) -> m.CheckResponse:
        """What it says once it was told something, whatever that is."""
        if not request.facts:
            return _need(request, m.CheckQuestion(governing="example.OnCall"))
        return _said(request, allowing())


def _said(request: m.CheckRequest, *verdicts: m.Verdict) -> m.CheckResponse:
    return m.CheckResponse(mark=request.mark, verdicts=m.Verdicts(verdicts=verdicts))


def _need(request: m.CheckRequest, *questions: m.CheckQuestion) -> m.CheckResponse:
    return m.CheckResponse(mark=request.mark, need=m.CheckQuestions(questions=questions))


def _die() -> NoReturn:
    os.write(2, b"out of paper\n")
    os._exit(3)


if __name__ == "__main__":
    setattr(server, "Service", FaultyService)  # noqa: B010 - mypy knows no assignment of classes
    checks = [OnCall(), Crowded(), *(check() for check in CHECKS)]
    server.serve("checks", LinePlugin, types=(*TYPES, *CHECK_TYPES), checks=checks)
