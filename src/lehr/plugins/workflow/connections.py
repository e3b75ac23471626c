"""Connects engines when they are needed: their libraries may be missing, and are slow to load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lehr.base.blocking import Blocking
from lehr.base.digest import Digest, digest
from lehr.base.errors import StalledError
from lehr.plugins.workflow.addresses import EngineAddress
from lehr.plugins.workflow.engines import Engine
from lehr.sdk.secrets import SecretValue

Connect = Callable[[EngineAddress, SecretValue | None], Engine]
"""Makes an engine, without asking it anything. The secret is its key or password."""

_MOST_OPEN = 64


class Connections:
    """Engines, each connected once. Another secret connects it again.

    Args:
        connect: makes them.
        blocking: threads of their own, closed with them.
    """

    def __init__(self, connect: Connect, blocking: Blocking) -> None:
        self._connect = connect
        self._blocking = blocking
        self._open: dict[Digest, tuple[SecretValue | None, Engine]] = {}

    async def engine(self, address: EngineAddress, secret: SecretValue | None) -> Engine:
        """The engine at `address`.

        Raises:
            StalledError: its library is not installed.
        """
        key = digest(address)
        known = self._open.get(key)
        if known is not None and known[0] == secret:
            return known[1]
        engine = self._connect(address, secret)
        self._open[key] = (secret, engine)
        if known is not None:
            await known[1].close()
        elif len(self._open) > _MOST_OPEN:
            oldest = next(iter(self._open))
            await self._open.pop(oldest)[1].close()
        return engine

    async def close(self) -> None:
        """Close all of them."""
        while self._open:
            await self._open.popitem()[1][1].close()
        self._blocking.close()


def connector(base: Path, blocking: Blocking) -> Connect:
    """Makes engines of every kind.

    Args:
        base: the directory that paths of databases are relative to.
        blocking: threads for libraries that block.
    """

    def connect(address: EngineAddress, secret: SecretValue | None) -> Engine:
        if address.temporal is not None:
            try:
                from lehr.plugins.workflow.temporal_engine import TemporalEngine  # noqa: PLC0415
            except ImportError as error:
                raise _missing("Temporal", "temporal") from error
            return TemporalEngine(address.temporal, secret)
        assert address.dbos is not None  # one of the two is given
        try:
            from lehr.plugins.workflow.dbos_engine import DbosEngine  # noqa: PLC0415
        except ImportError as error:
            raise _missing("DBOS", "dbos") from error
        return DbosEngine(address.dbos, secret, base, blocking)

    return connect


def _missing(engine: str, extra: str) -> StalledError:
    return StalledError(
        f"the library of {engine} is not installed", code="WFL106", fix=f"pip install 'lehr[{extra}]'"
    )
