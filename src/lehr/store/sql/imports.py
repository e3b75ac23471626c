"""Stores incarnations of other states for reading. They are in no partition, so nothing enforces them."""

from __future__ import annotations

import msgspec

from lehr.base.digest import Digest, short
from lehr.model.incarnation import Incarnation
from lehr.model.reason import Reason
from lehr.model.writes import Import, Refused
from lehr.store.archive import open_archive
from lehr.store.sql.session import Session
from lehr.store.sql.tables import IMPORTED, IMPORTED_ASSET


def import_incarnation(db: Session, write: Import) -> Incarnation | Refused:
    """Read the file of `write` into the state, asset by asset; a damaged file is refused as a whole."""
    with open_archive(write.path) as archive:
        header = archive.header
        name = header.name
        digest = None if write.replace else _digest_of(db, name)
        if digest is not None and digest != header.digest:
            return Refused(Reason.EXISTS, f"another {name} was imported before, with digest {short(digest)}")
        db.execute("DELETE FROM imported_asset WHERE name = ?", (name,))
        db.execute(
            f"{IMPORTED.insert} ON CONFLICT (name) DO UPDATE SET at = excluded.at,"
            " header = excluded.header, checksum = excluded.checksum",
            IMPORTED.sealed(name, float(write.at), msgspec.json.encode(header)),
        )
        db.executemany(
            IMPORTED_ASSET.insert,
            (
                IMPORTED_ASSET.sealed(name, asset.id, asset.type, asset.digest, asset.body, origin)
                for asset, origin in archive.assets()
            ),
        )
        return header


def _digest_of(db: Session, name: str) -> Digest | None:
    """Of what was imported under a name before; None if nothing was."""
    query = f"SELECT {IMPORTED.names()} FROM imported WHERE name = ?"  # noqa: S608 - our own names
    row = db.execute(query, (name,)).fetchone()
    return None if row is None else msgspec.json.decode(IMPORTED.read(row)[2], type=Incarnation).digest
