"""Who may command a running `lehr run`, and who says who that is."""

from __future__ import annotations

import asyncio
import getpass
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from lehr.control import server as module
from lehr.control.messages import AnyRequest, CommandResult, Refresh
from lehr.control.server import Server
from lehr.control.socket import SOCKET


class Carried:
    """What was carried out, and for whom."""

    def __init__(self) -> None:
        self.commands: list[tuple[AnyRequest, str]] = []

    async def __call__(self, request: AnyRequest, actor: str) -> CommandResult:
        self.commands.append((request, actor))
        return CommandResult(True, "done")


def conversing(folder: Path, carried: Carried, work: Callable[[], Awaitable[CommandResult]]) -> CommandResult:
    """What `work` is answered while a server listens in `folder`."""

    async def main() -> CommandResult:
        server = Server(folder, carried)
        await server.start()
        try:
            return await work()
        finally:
            await server.stop()

    return asyncio.run(main())


async def said(folder: Path, line: bytes) -> CommandResult:
    reader, writer = await asyncio.open_unix_connection(folder / SOCKET)
    writer.write(line + b"\n")
    answer = await reader.readline()
    writer.close()
    return msgspec.json.decode(answer, type=CommandResult)


def test_the_kernel_says_who_commands_and_the_command_cannot(tmp_path: Path) -> None:
    carried = Carried()
    line = b'{"command": "refresh", "actor": "root", "user": 0}'
    assert conversing(tmp_path, carried, lambda: said(tmp_path, line)).ok
    assert carried.commands == [(Refresh(), getpass.getuser())]


def test_a_command_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "peer_user", lambda connection: 54321)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    carried = Carried()
    answer = conversing(tmp_path, carried, lambda: said(tmp_path, b'{"command": "refresh"}'))
    assert not answer.ok
    assert answer.code == "CTL122"
    assert "user 54321" in answer.message
    assert carried.commands == []


def test_only_its_owner_can_reach_the_socket(tmp_path: Path) -> None:
    async def mode() -> CommandResult:
        return CommandResult(True, oct(stat.S_IMODE((tmp_path / SOCKET).stat().st_mode)))

    assert conversing(tmp_path, Carried(), mode).message == "0o600"


@pytest.mark.parametrize("line", [b"no command", b"{}", b'{"command": "rm"}', b'{"command": "freeze"}'])
def test_what_is_no_command_carries_nothing_out(line: bytes, tmp_path: Path) -> None:
    carried = Carried()
    answer = conversing(tmp_path, carried, lambda: said(tmp_path, line))
    assert (answer.ok, answer.code) == (False, "CTL123")
    assert carried.commands == []
