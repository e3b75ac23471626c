"""Keeping incarnations of other states, to be read. They are in no partition, so nothing enforces them."""

from __future__ import annotations

import msgspec

from lehr.base.digest import short
from lehr.model.incarnation import Incarnation
from lehr.store.archive import open_archive
from lehr.store.sql.session import Session
from lehr.store.writes import Import, Refused


def import_incarnation(db: Session, write: Import) -> Incarnation | Refused:
    """Read the file of `write` into the state, asset by asset; one that is damaged is refused as a whole."""
    with open_archive(write.path) as archive:
        header = archive.header
        name = header.name
        row = db.execute("SELECT header FROM imported WHERE name = ?", (name,)).fetchone()
        digest = None if row is None else msgspec.json.decode(row[0], type=Incarnation).digest
        if digest is not None and digest != header.digest and not write.replace:
            return Refused("Exists", f"another {name}, with digest {short(digest)}, was imported before")
        db.execute("DELETE FROM imported_asset WHERE name = ?", (name,))
        db.execute(
            "INSERT INTO imported (name, at, header) VALUES (?, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET at = excluded.at, header = excluded.header",
            (name, write.at, msgspec.json.encode(header)),
        )
        db.executemany(
            "INSERT INTO imported_asset (name, id, type, digest, body, origin) VALUES (?, ?, ?, ?, ?, ?)",
            (
                (name, asset.id, asset.type, asset.digest, asset.body, origin)
                for asset, origin in archive.assets()
            ),
        )
        return header
