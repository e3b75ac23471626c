"""The plugin for lines, with a fault: the first argument names it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from typing import Any

from lehr.plugins.grpc_library import grpc
from lehr.plugins.remote import messages as m
from lehr.plugins.remote import server
from lehr.plugins.remote.service import Service
from tests.integration.plugins.remote.line_plugin import TYPES, LinePlugin

FAULT = sys.argv[1]


class FaultyService(Service):
    """Answers wrongly."""

    async def describe(self, request: m.DescribeRequest, context: object) -> m.DescribeResponse:
        answer = await super().describe(request, context)
        if FAULT == "describe-hangs":
            await asyncio.sleep(600)
        if FAULT == "describe-trouble":
            trouble = m.Trouble(
                kind=m.Trouble.KIND_STALLED, what="no account is configured", fix="set ACCOUNT"
            )
            answer.trouble.CopyFrom(trouble)
        if FAULT == "describe-garbage":
            answer.traits.turns = 4_000_000_000
            answer.traits.diff_timeout = float("nan")
            answer.traits.fencing = 77  # type: ignore[assignment]
        return answer

    async def diff(self, request: m.DiffRequest, context: Any) -> m.DiffResponse:  # noqa: C901, PLR0911, PLR0912
        good = await super().diff(request, context)
        match FAULT:
            case "hangs":
                await asyncio.sleep(600)
            case "stops":
                os.kill(os.getpid(), 19)
            case "dies":
                os.write(2, b"out of paper\n")
                os._exit(3)
            case "status":
                await context.abort(grpc.StatusCode.INTERNAL, "the password is hunter22")
            case "other-answer":
                return m.DiffResponse(mark=b"other", difference=good.difference)
            case "no-result":
                return m.DiffResponse(mark=request.mark)
            case "no-json":
                change = m.Change(path="text", intended=b"{")
                return m.DiffResponse(mark=request.mark, difference=m.Difference(changes=[change]))
            case "no-path":
                change = m.Change(intended=b"1")
                return m.DiffResponse(mark=request.mark, difference=m.Difference(changes=[change]))
            case "needs-for-ever":
                need = m.Need(assets=[f"asset-{len(request.intent.assets)}"])
                return m.DiffResponse(mark=request.mark, need=need)
            case "needs-nothing":
                return m.DiffResponse(mark=request.mark, need=m.Need())
            case "needs-secret":
                need = m.Need(secrets=["env:ANOTHER"])
                return m.DiffResponse(mark=request.mark, need=need)
            case "too-large":
                change = m.Change(path="text", intended=b'"' + b"x" * 5_000_000 + b'"')
                return m.DiffResponse(mark=request.mark, difference=m.Difference(changes=[change]))
            case "unknown-trouble":
                trouble = m.Trouble(kind=99, what="new trouble")  # type: ignore[arg-type]
                return m.DiffResponse(mark=request.mark, trouble=trouble)
            case "tells-secret":
                trouble = m.Trouble(
                    kind=m.Trouble.KIND_STALLED, what="hunter22 is wrong", why="as hunter22 is"
                )
                return m.DiffResponse(mark=request.mark, trouble=trouble) if good.need.secrets == [] else good
            case "shows-secret":
                change = m.Change(path="text", intended=b'["hunter22"]', observed=b'{"hunter22": 1}')
                difference = m.Difference(changes=[change], notes=["it was hunter22"])
                found = m.DiffResponse(mark=request.mark, difference=difference)
                return found if good.need.secrets == [] else good
        return good

    async def push(self, request: m.PushRequest, context: Any) -> AsyncGenerator[m.PushResponse, None]:
        match FAULT:
            case "push-dies":
                os._exit(3)
            case "push-ends":
                return
            case "push-status":
                await context.abort(grpc.StatusCode.INTERNAL, "no")
            case "push-unknown-result":
                yield m.PushResponse(outcome=m.Outcome(result=99, message="done, somehow"))  # type: ignore[arg-type]
                return
            case "push-fenced":
                trouble = m.Trouble(kind=m.Trouble.KIND_FENCED, what="epoch 1 is over")
                yield m.PushResponse(trouble=trouble)
                return
            case "push-tells-secret":
                async for event in super().push(request, context):
                    if event.WhichOneof("event") == "outcome":
                        event.outcome.message = "the password is hunter22"
                    yield event
                return
            case "push-lasts":
                yield m.PushResponse(progress=m.Progress(message="begun"))
                await asyncio.sleep(600)
        async for event in super().push(request, context):
            yield event

    async def status(self, request: m.StatusRequest, context: object) -> m.StatusResponse:
        if FAULT == "unknown-state":
            return m.StatusResponse(state=99)  # type: ignore[arg-type]
        return await super().status(request, context)


if __name__ == "__main__":
    setattr(server, "Service", FaultyService)  # noqa: B010 - mypy knows no assignment of classes
    server.serve("faulty", LinePlugin, types=TYPES)
