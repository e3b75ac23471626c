"""Selections of installed packages, and those at other addresses, by name or URL."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lehr.base.blocking import Blocking
    from lehr.sdk.target_selection import Selections, SelectionService, TargetSelector


def selections(
    addresses: Mapping[str, str],
    tokens: Mapping[str, Path] | None = None,
    remote: Mapping[str, SelectionService] | None = None,
) -> Selections:
    """Selections at `addresses` by their names, and those of installed packages; each is made once.

    Args:
        tokens: files of the tokens that some of those at addresses ask for.
        remote: those of plugins in other processes, by name.
    """
    known: dict[str, SelectionService] = dict(remote or {})

    def service(name: str) -> SelectionService:
        if name not in known:
            from lehr.base.errors import LehrError

            if name not in addresses and "://" in name:
                raise LehrError(
                    f"{name!r} is an address, which intent cannot give to a selection",
                    code="WIR107",
                    fix=f"name it in the policy, and start `lehr run` with --selection NAME={name}",
                )
            known[name] = selection_service(addresses.get(name, name), token=(tokens or {}).get(name))
        return known[name]

    return service


def selection_service(name: str, seconds: float = 10.0, token: Path | None = None) -> SelectionService:
    """The service at a URL, or that of an installed package by the name of its entry point.

    Args:
        token: file of the token for one at a URL, read for each question; None if it asks for none.

    Raises:
        LehrError: there is none, or the token would be sent without encryption.
        StalledError: that of the package cannot be used.
    """
    from lehr.base.blocking import Threads
    from lehr.base.errors import LehrError
    from lehr.sdk.target_selection import TargetSelector
    from lehr.wiring.installed import blaming, installed

    if "://" in name:
        from lehr.http.selection_service import HttpSelectionService

        return HttpSelectionService(name, seconds, None if token is None else partial(token_in, token))
    entries = {entry.name: entry for entry in installed("lehr.target_selections")}
    if name not in entries:
        known = ", ".join(entries) or "none"
        raise LehrError(
            f"{name!r} is not a selection of an installed package, nor a URL",
            code="WIR102",
            fix=f"installed selections: {known}",
        )
    with blaming(entries[name]):
        selector: object = entries[name].load()()
        if not isinstance(selector, TargetSelector):
            raise TypeError(f"it returned a {type(selector).__name__}, not a TargetSelector")
    return InstalledSelection(name, selector, Threads(f"selection {name}", 1), seconds)


def token_in(file: Path) -> str:
    """The token in a file.

    Raises:
        LehrError: it cannot be read, or is not one line.
    """
    from lehr.base.errors import LehrError, raised_as

    fix = "write the token into it, on one line"
    what, failures = f"the token in {file} cannot be read", (OSError, UnicodeDecodeError)
    with raised_as(LehrError, what, code="WIR108", fix=fix, on=failures):
        found = file.read_text().strip()
    if not found or not found.isascii() or not found.isprintable():
        raise LehrError(
            f"{file} contains no token", code="WIR109", why="a token is one line of text", fix=fix
        )
    return found


class InstalledSelection:
    """A `SelectionService` by a Python object of an installed package, in a thread of its own.

    A thread cannot be ended: while a question is not answered, no other is asked.
    """

    def __init__(self, name: str, selector: TargetSelector, blocking: Blocking, seconds: float) -> None:
        self.name = name
        self._selector = selector
        self._blocking = blocking
        self._seconds = seconds
        self._asking: asyncio.Future[bytes] | None = None

    async def ask(self, question: bytes) -> bytes:
        from lehr.base.errors import LehrError

        if self._asking is not None and not self._asking.done():
            raise LehrError(
                "the selection has not answered an earlier question",
                code="WIR103",
                fix="fix the package, and restart `lehr run`",
            )
        self._asking = asyncio.ensure_future(self._blocking.run(self._answer, question))
        self._asking.add_done_callback(_retrieved)
        done, _ = await asyncio.wait({self._asking}, timeout=self._seconds)
        if not done:
            raise LehrError(
                "the selection did not answer in time",
                code="WIR104",
                why=f"there was no answer within {self._seconds:g} seconds",
                fix="fix the package, and restart `lehr run`",
            )
        return self._asking.result()

    async def idle(self) -> None:
        """Wait until no question is being answered."""
        if self._asking is not None:
            await asyncio.wait({self._asking})

    def _answer(self, question: bytes) -> bytes:
        """Runs in a thread. Decoded for each call, so that no value of Lehr's can be changed."""
        import msgspec

        from lehr.sdk.target_selection import SelectionQuestion

        try:
            answer = self._selector.select(msgspec.json.decode(question, type=SelectionQuestion))
        except SystemExit as error:
            raise RuntimeError("it called sys.exit") from error
        return msgspec.json.encode(answer)


def _retrieved(asked: asyncio.Future[bytes]) -> None:
    if not asked.cancelled():
        asked.exception()  # nothing may await it any more
