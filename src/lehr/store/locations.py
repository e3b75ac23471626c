"""Which store belongs to a state folder: a file in it, or a PostgreSQL database that it names.

In: the folder, and the address that the user names, if any. Out: the open store. A folder whose store is
elsewhere remembers where, without a password. So users name the store only once, and cannot start over in a
file by forgetting to.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lehr.base import durable
from lehr.base.errors import StalledError, raised_as
from lehr.sdk.store import CheckableStore

if TYPE_CHECKING:
    from lehr.store.postgres import Address
    from lehr.store.postgres.claims import ClaimTable

_NOTE = "store"
"""The file next to the state file that remembers an address."""


def has_store(file: Path) -> bool:
    """Whether `file` holds a store, or the folder knows where it is."""
    return file.is_file() or _note_of(file).is_file()


def is_gone(file: Path) -> bool:
    """Whether the store is gone. One that cannot be read counts as present."""
    for path in (file, _note_of(file)):
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return False
        return False
    return True


def store_of(file: Path, named: str | None = None, *, read_only: bool = False) -> CheckableStore:
    """The store in the state file `file`, at the address in its folder, or at the address `named`.

    Args:
        read_only: True for readers. Otherwise a missing store is created, and remembered.

    Raises:
        TransientError, StalledError: it cannot be opened, or it is not the folder's store.
    """
    text = named or _noted(file)
    if text is None:
        from lehr.store.sqlite import SqliteStore  # noqa: PLC0415 - only one of the two

        return SqliteStore(file, read_only=read_only, background=not read_only)
    address = _address(text)
    if not read_only:
        _require_same(file, address)
    from lehr.store.postgres import PostgresStore  # noqa: PLC0415

    store = PostgresStore(address, read_only=read_only)
    if not read_only and not _note_of(file).exists():
        try:
            _write_note(file, address)
        except BaseException:
            store.close()
            raise
    return store


def forget_store(file: Path) -> None:
    """Make the folder of `file` forget a store elsewhere."""
    _note_of(file).unlink(missing_ok=True)


def place_of(file: Path, named: str | None = None) -> str:
    """Where `store_of` finds the store, for messages: without credentials.

    Raises:
        StalledError: the address cannot be read.
    """
    text = named or _noted(file)
    return str(file) if text is None else _address(text).place


def register_of(file: Path, named: str | None, host: str, *, read_only: bool = False) -> ClaimTable | None:
    """The register of claims in the database of the store; None where the store is a file.

    Raises:
        StalledError: the address cannot be read.
    """
    text = named or _noted(file)
    if text is None:
        return None
    address = _address(text)
    from lehr.store.postgres.claims import ClaimTable  # noqa: PLC0415

    return ClaimTable(address, host, read_only=read_only)


def _address(text: str) -> Address:
    what, fix = "the PostgreSQL driver is not installed", "pip install 'lehr[postgres]'"
    with raised_as(StalledError, what, code="STO106", fix=fix, on=ImportError):
        from lehr.store.postgres import Address  # noqa: PLC0415 - the driver may be missing
    return Address(text)


def _note_of(file: Path) -> Path:
    return file.with_name(_NOTE)


def _noted(file: Path) -> str | None:
    note = _note_of(file)
    try:
        return note.read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StalledError(
            f"{note} cannot be read",
            code="STO107",
            why=str(error),
            fix="it holds the address of the store: name the store with --store, or fix the file",
        ) from error


def _write_note(file: Path, address: Address) -> None:
    note = _note_of(file)
    fix = "check the permissions of its folder"
    with raised_as(StalledError, f"{note} cannot be written", code="STO108", fix=fix):
        durable.replace(note, f"{address.url}\n".encode(), 0o644)


def _require_same(file: Path, address: Address) -> None:
    """Check that no pins and running pushes are left behind by accident."""
    noted = _noted(file)
    if noted is None and file.exists():
        raise StalledError(
            f"state folder {file.parent} has its store in a file",
            code="STO109",
            why=f"a store at {address.place} would not know its pins and running pushes",
            fix=f"name another state folder with --state, or move {file.name} away to start over",
        )
    if noted is not None and _address(noted).place != address.place:
        raise StalledError(
            f"state folder {file.parent} has its store at {_address(noted).place}",
            code="STO110",
            why=f"not at {address.place}; two stores would not know of each other",
            fix=f"leave out --store; or, if the store was moved there, remove {_note_of(file)}",
        )
