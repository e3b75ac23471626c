"""Imported incarnations: each matches its digest."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lehr.base.digest import digest_all
from lehr.model.damage import Advance, Damage
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import RunningMerkle
from lehr.store.sql.session import Session

_FIX = "import it again from its file"


def check(db: Session, advance: Advance) -> Iterator[Damage]:
    """Check each one with all its assets."""
    for name, header in db.execute("SELECT name, header FROM imported ORDER BY name").fetchall():
        try:
            expected = msgspec.json.decode(header, type=Incarnation)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            yield Damage(f"the header of the import {name} cannot be read", str(error), _FIX)
            continue
        merkle = RunningMerkle()
        for id, type, digest, body in db.stream(
            "SELECT id, type, digest, body FROM imported_asset WHERE name = ? ORDER BY id", (name,)
        ):
            advance(1)
            merkle.add(id, digest)
            if digest_all((id, type, bytes(body).decode())) != digest:
                yield Damage(f"asset {id} of the import {name} was changed", "its digest differs", _FIX)
        if merkle.digest() != expected.digest:
            yield Damage(f"the import {name} does not match its digest", "assets differ", _FIX)
    for (name,) in db.execute(
        "SELECT DISTINCT name FROM imported_asset a"
        " WHERE NOT EXISTS (SELECT 1 FROM imported i WHERE i.name = a.name)"
    ):
        yield Damage(f"there are assets of {name}, which was not imported", "its header is missing", _FIX)
