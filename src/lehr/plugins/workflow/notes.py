"""Notes on disk: which engine has the run of a push, for a process that has not started it.

`status` is asked about a push without its intent, which may have changed. A note is written before a run is
started, holds no secret, and may be lost: then the run is found by what intent declares now.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from lehr.base import durable
from lehr.base.blocking import Blocking
from lehr.base.digest import digest
from lehr.base.errors import TransientError, raised_as
from lehr.model.asset import AssetKey
from lehr.plugins.workflow.addresses import EngineAddress


class Note(msgspec.Struct, frozen=True):
    """The last push of an asset that may have started a run, or has followed one.

    Attributes:
        operation: its id.
        run: id of the push that started the run.
        engine: where.
    """

    operation: str
    run: str
    engine: EngineAddress


class Notes:
    """Notes, one for each asset.

    Args:
        folder: of their own. It survives restarts.
        blocking: threads of their own, which read and write.
    """

    def __init__(self, folder: Path, blocking: Blocking) -> None:
        self._folder = folder
        self._blocking = blocking

    async def read(self, asset: AssetKey) -> Note | None:
        """The note about an asset; None for none that can be read."""
        return await self._blocking.run(self._read, self.place(asset))

    async def write(self, asset: AssetKey, note: Note) -> None:
        """Replace the note about an asset. It survives a crash of the machine.

        Raises:
            TransientError: it cannot be written.
        """
        await self._blocking.run(self._write, self.place(asset), note)

    async def forget(self, asset: AssetKey) -> None:
        """Remove the note about an asset."""
        await self._blocking.run(self.place(asset).unlink, missing_ok=True)

    def close(self) -> None:
        """Release the threads."""
        self._blocking.close()

    def place(self, asset: AssetKey) -> Path:
        """The file of an asset's note."""
        return self._folder / f"{digest([asset.partition, asset.id])}.json"

    def _read(self, path: Path) -> Note | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Note)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError:
            return None
        except OSError as error:
            raise TransientError(
                "the note about a push cannot be read", code="WFL104", why=str(error), fix=f"check {path}"
            ) from error

    def _write(self, path: Path, note: Note) -> None:
        fix = "check that the state directory has free space and that Lehr can write to it"
        with raised_as(TransientError, "the push cannot be noted", code="WFL105", fix=fix):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            durable.replace(path, msgspec.json.encode(note), 0o600)
