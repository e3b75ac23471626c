"""The fake provider, running for a test."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.terraform.provider import Planned, State, Value
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.proposed import proposed_new
from lehr.plugins.terraform.wire.client import WireProvider
from lehr.plugins.terraform.wire.starting import Providers
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden
from tests.terraform import fake
from tests.terraform.fake_store import Store

NOTHING = State(None)


class Running:
    """A folder with a fake provider, its store, and its processes."""

    def __init__(self, folder: Path, protocol: int = 6) -> None:
        self.folder = folder
        self.protocol = protocol
        self.store = Store(folder / "store")
        self.lines: list[str] = []
        self.providers = Providers(PluginProcesses(Inline(), SystemClock()))
        self.record = folder / "record"

    def program(self, **variables: str) -> Program:
        return fake.program(self.folder, self.protocol, FAKE_RECORD=str(self.record), **variables)

    async def start(
        self,
        bad_days: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
        program: Program | None = None,
        hidden: Hidden = NOTHING_HIDDEN,
        seconds: float = 60.0,
        greeted: float = 60.0,
    ) -> WireProvider:
        provider = await self.providers.start(
            program or self.program(),
            log=self.lines.append,
            hidden=hidden,
            seconds=seconds,
            greeted=greeted,
        )
        written = {"store": str(self.folder / "store"), "bad_days": bad_days, "token": token}
        try:
            await provider.configure(configured(provider.schema.provider.block, written)[0])
        except BaseException:
            await provider.close()
            raise
        return provider

    @contextlib.asynccontextmanager
    async def started(self, *arguments: Any, **more: Any) -> AsyncIterator[WireProvider]:
        provider = await self.start(*arguments, **more)
        try:
            yield provider
        finally:
            await provider.close()

    def pid(self) -> int:
        """The process that was started last."""
        return int((self.folder / "store" / "pid").read_text())

    def calls(self) -> list[str]:
        """Names of the calls that were received."""
        return [json.loads(line)["call"] for line in self.record.read_text().splitlines()]


def config(provider: WireProvider, type_: str, written: Mapping[str, Any]) -> Value:
    value, problems = configured(provider.schema.resources[type_].block, written)
    assert problems == ()
    return value


async def planned(
    provider: WireProvider, type_: str, prior: State, written: Mapping[str, Any] | None
) -> Planned:
    value = None if written is None else config(provider, type_, written)
    block = provider.schema.resources[type_].block
    return await provider.plan(type_, prior, proposed_new(block, prior.value, value), value)


async def made(
    provider: WireProvider, type_: str, written: Mapping[str, Any] | None, prior: State = NOTHING
) -> State:
    """The state after a plan and an apply."""
    plan = await planned(provider, type_, prior, written)
    value = None if written is None else config(provider, type_, written)
    applied = await provider.apply(type_, prior, plan, value)
    assert applied.diagnostics == ()
    return applied.state
