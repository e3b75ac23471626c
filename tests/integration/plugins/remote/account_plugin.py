"""A plugin for entries of several accounts, as a program. An account is a folder with a token in it."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lehr.base.errors import StalledError
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Change, Diff, Goal, Target
from lehr.model.operation import DONE, Outcome
from lehr.model.types import AssetType
from lehr.plugins.remote.server import serve
from lehr.sdk.plugin import AssetPlugin, Found, Push, Reader, Traits
from lehr.sdk.provider import ConfiguredProvider, provider_of
from lehr.sdk.secrets import Secrets, SecretValue

TOKEN = ".token"

_log = logging.getLogger("accounts")


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of an account.

    Attributes:
        name: of its file in the account.
    """

    name: str
    text: str


class _Account(NamedTuple):
    folder: Path
    token: SecretValue | None


class AccountPlugin(AssetPlugin):
    """Keeps entries. One without a provider is in the folder `OWN_FOLDER`."""

    types = ("example.Entry",)
    traits = Traits(goals=frozenset({Goal.ABSENT}), providers=True)

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare the file."""
        entry, account = read.payload(target.id, Entry), await self._account(read, target.id)
        observed = _observed(account, entry)
        intended = entry.text if target.goal is Goal.PRESENT else None
        return Diff() if intended == observed else Diff((Change("text", intended, observed),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Write or remove the file."""
        entry, account = read.payload(target.id, Entry), await self._account(read, target.id)
        path = account.folder / entry.name
        if target.goal is Goal.ABSENT:
            path.unlink(missing_ok=True)
        elif _observed(account, entry) != entry.text:
            path.with_suffix(".new").write_text(entry.text)
            os.replace(path.with_suffix(".new"), path)
        return DONE

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """Entries of the plugin's own folder."""
        for found in _drafts(_own_account(), query):
            yield found

    async def discover_in(
        self, provider: ConfiguredProvider, query: Sequence[str], partition: Partition
    ) -> AsyncIterator[Found]:
        """Entries of an account."""
        for found in _drafts(_opened(await provider.revealed(self._secrets)), query):
            yield found

    async def _account(self, read: Reader, id: AssetId) -> _Account:
        provider = provider_of(read, id)
        if provider is None:
            return _own_account()
        return _opened(await provider.revealed(self._secrets))


def _own_account() -> _Account:
    return _Account(Path(os.environ["OWN_FOLDER"]), None)


def _opened(settings: dict[str, Any]) -> _Account:
    account = _Account(Path(settings["folder"]), settings["token"])
    try:
        expected = (account.folder / TOKEN).read_text()
    except FileNotFoundError:
        raise StalledError(f"there is no account {account.folder}", code="ACC101") from None
    if account.token is None or not account.token.equals(expected.encode()):
        raise StalledError(f"the account {account.folder} refuses the token", code="ACC102")
    return account


def _observed(account: _Account, entry: Entry) -> str | None:
    _log.info("look %s", account.folder / entry.name)
    with contextlib.suppress(FileNotFoundError):
        return (account.folder / entry.name).read_text()
    return None


def _drafts(account: _Account, names: Sequence[str]) -> list[Found]:
    return [
        Found(
            id=f"entries/{path.name}",
            type="example.Entry",
            payload={"name": path.name, "text": path.read_text()},
        )
        for path in sorted(account.folder.iterdir())
        if path.name in names
    ]


if __name__ == "__main__":
    serve("accounts", AccountPlugin, version="1", types=[AssetType("example.Entry", Entry)])
