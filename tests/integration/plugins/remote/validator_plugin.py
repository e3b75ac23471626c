"""Two validators in a process; with a fault, if the first argument names one."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from lehr.base.diagnostics import Diagnostic, Severity
from lehr.model.asset import AssetId
from lehr.plugins.grpc_library import grpc
from lehr.plugins.remote import messages as m
from lehr.plugins.remote import server
from lehr.plugins.remote.service import Service
from lehr.sdk.validator import Proposal
from tests.integration.plugins.remote.line_plugin import TYPES, Line, LinePlugin

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
SECRET = os.environ.get("PASSWORD", "")


def naming(proposal: Proposal) -> Iterator[Diagnostic]:
    """N001: names are in lower case. N002, a warning: somebody owns a site."""
    for change in proposal.changes():
        if change.after is None or change.after.type != "shop.Site":
            continue
        site = proposal.registry.payload(change.after, dict)
        if site.get("name", "") != site.get("name", "").lower():
            yield Diagnostic(
                code="N001",
                what=f"the name {site['name']} has capital letters",
                why="it is part of URLs",
                fix=f"write {site['name'].lower()}",
                at=proposal.place(change.after, "/payload/name"),
            )
        if "owner" not in site:
            yield Diagnostic(
                code="N002",
                what=f"{change.after.id} has no owner",
                fix="add `owner`",
                subject=change.after.id,
                severity=Severity.WARNING,
            )


def hosts(proposal: Proposal) -> Iterator[Diagnostic]:
    """H001: the host of a site exists. H002: sites refer to a host that is removed."""
    changes = list(proposal.changes())
    needed = {
        change.after.id: AssetId(change.after.document()["payload"]["host"])
        for change in changes
        if change.after is not None and change.after.type == "shop.Site"
    }
    removed = [change.before for change in changes if change.before is not None and change.after is None]
    if FAULT != "one-by-one":
        proposal.prefetch(needed.values(), [asset.id for asset in removed])
    for change in changes:
        if change.id in needed and proposal.type_of(needed[change.id]) != "shop.Host":
            assert change.after is not None
            yield Diagnostic(
                code="H001",
                what=f"there is no host {needed[change.id]}",
                fix="declare it",
                at=proposal.place(change.after, "/payload/host"),
            )
    for asset in removed:
        for referrer, mention in proposal.mentioned_by(asset.id):
            what, fix = f"{referrer.id} is on {asset.id}, which is removed", "move it first"
            yield Diagnostic(code="H002", what=what, fix=fix, at=proposal.place(referrer, mention.path))
            yield Diagnostic(code="H003", what="it is removed", fix="keep it", subject=asset.id)


def lines(proposal: Proposal) -> Iterator[Diagnostic]:
    """L001: a line whose class the plugin knows is not empty."""
    for change in proposal.changes():
        if change.after is not None and not proposal.registry.payload(change.after, Line).text:
            yield Diagnostic(
                code="L001", what="it is empty", at=proposal.place(change.after, "/payload/text")
            )


def counting(proposal: Proposal) -> Iterator[Diagnostic]:
    """Has a problem with more than one change at a time: it breaks the rules of validators."""
    numbers = [number for number, _change in enumerate(proposal.changes(), start=1)]
    yield Diagnostic(code=f"C{len(numbers)}", what=f"{len(numbers)} of {proposal.size_before()} changes")


def first(proposal: Proposal) -> Iterator[Diagnostic]:
    """Has a problem with the change that comes first: it breaks the rules of validators."""
    for change in list(proposal.changes())[:1]:
        yield Diagnostic(code="F1", what=f"{change.id} is the first", fix="none", subject=change.id)


def broken(proposal: Proposal) -> Iterator[Diagnostic]:
    """Has a bug."""
    yield Diagnostic(code=str(proposal.limits.jump.factor), what="never found")


def problem(**changes: Any) -> m.Problem:
    usual = {"severity": m.Problem.SEVERITY_ERROR, "code": "N001", "asset": "web", "what": "it is wrong"}
    return m.Problem(**{**usual, **changes})


PROBLEMS = {
    "no-code": [problem(code="")],
    "other-code": [problem(code="a b")],
    "lehr-code": [problem(code="x/VAL051")],
    "long-code": [problem(code="N" * 65)],
    "no-what": [problem(what=" \n ")],
    "unknown-asset": [problem(asset="elsewhere")],
    "no-pointer": [problem(pointer="payload/name")],
    "pointer-alone": [problem(asset="", pointer="/payload/name")],
    "long-pointer": [problem(pointer="/" * 1_001)],
    "long": [problem(why="x" * 8_001)],
    "many": [problem()] * 1_001,
    "huge": [problem(what="x" * 5_000_000)],
    "unknown-severity": [problem(severity=99)],
    "unset-severity": [problem(severity=0)],
    "lines": [problem(what="it\nis\x1b[31m wrong", why=f"{SECRET} is\twrong", fix="fix\r\nit")],
    "odd-pointers": [problem(pointer=pointer) for pointer in ("/", "/~", "/payload/name/99/x", "//payload")],
    "of-no-asset": [problem(asset="")],
}


class FaultyService(Service):
    """Answers wrongly."""

    def __init__(self, served: Any) -> None:
        super().__init__(served)
        self.asked = 0

    async def validate(  # noqa: C901, PLR0911, PLR0912
        self, request: m.ValidateRequest, context: Any
    ) -> m.ValidateResponse:
        self.asked += 1
        if FAULT in PROBLEMS:
            return _said(request, *PROBLEMS[FAULT])
        match FAULT:
            case "hangs":
                await asyncio.sleep(600)
            case "blocks":
                time.sleep(600)  # noqa: ASYNC251 - which a plugin must not do
            case "dies":
                _die()
            case "dies-once":
                if not os.path.exists(os.environ["MARK"]):  # noqa: ASYNC240
                    open(os.environ["MARK"], "w").close()  # noqa: ASYNC230
                    _die()
            case "status":
                await context.abort(grpc.StatusCode.INTERNAL, f"the password is {SECRET}")
            case "until-marked":
                if not os.path.exists(os.environ["MARK"]):  # noqa: ASYNC240
                    return m.ValidateResponse(mark=request.mark)
            case "other-answer":
                return m.ValidateResponse(mark=b"another", problems=m.Problems())
            case "no-result":
                return m.ValidateResponse(mark=request.mark)
            case "trouble":
                trouble = m.Trouble(kind=99, what=f"{SECRET} is\nwrong", fix="change it", code="X1")  # type: ignore[arg-type]
                return m.ValidateResponse(mark=request.mark, trouble=trouble)
            case "transient":
                trouble = m.Trouble(kind=m.Trouble.KIND_TRANSIENT, what="the rules are being loaded")
                return m.ValidateResponse(mark=request.mark, trouble=trouble)
            case "slow":
                await asyncio.sleep(0.3)
                return _need(request, f"asset-{self.asked}")
            case "asks-for-ever":
                return _need(request, f"asset-{self.asked}")
            case "asks-again":
                return _need(request, "web")
            case "asks-nothing":
                return _need(request)
            case "asks-much":
                return _need(request, *(f"asset-{number}" for number in range(10_001)))
            case "asks-odd":
                return await self._asked_odd(request)
            case "remembers":
                return _said(request, problem(code=f"N{self.asked}"))
        return await super().validate(request, context)

    async def _asked_odd(self, request: m.ValidateRequest) -> m.ValidateResponse:
        """Asks for what no asset can be called, and reports what it gets."""
        if not request.assets:
            return _need(request, "no id", "a\0b", "")
        exist = [asset.id for asset in request.assets if asset.exists]
        return _said(request, problem(what=f"{len(request.assets)} answers, {len(exist)} assets"))


def _said(request: m.ValidateRequest, *problems: m.Problem) -> m.ValidateResponse:
    return m.ValidateResponse(mark=request.mark, problems=m.Problems(problems=problems))


def _need(request: m.ValidateRequest, *assets: str) -> m.ValidateResponse:
    return m.ValidateResponse(mark=request.mark, need=m.ValidateNeed(assets=assets))


def _die() -> NoReturn:
    os.write(2, b"out of paper\n")
    os._exit(3)


if __name__ == "__main__":
    setattr(server, "Service", FaultyService)  # noqa: B010 - mypy knows no assignment of classes
    found = {"naming": naming, "hosts": hosts, "lines": lines}
    found |= {"counting": counting, "first": first, "broken": broken}
    server.serve("validators", LinePlugin, types=TYPES, validators=found)
