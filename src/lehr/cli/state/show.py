"""`lehr state show`: the location and content of the state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lehr.cli.command import command
from lehr.cli.output import output_option, show_text
from lehr.cli.stored import (
    found_state,
    has_store,
    named_store,
    open_store,
    running,
    state_option,
    workspace_state,
)
from lehr.control.state_folder import UNUSED, record_of

_MEANING = {
    "age-identity.txt": "private key for decrypting secrets",
    "commands": "marks of running commands",
    "control.sock": "socket on which `lehr run` accepts commands",
    "generate": "cached outputs of generators",
    "http-token": "token for reading over HTTP",
    "lock": "lock of `lehr run`",
    "sources": "mirrors of the sources",
    "state.sqlite": "incarnations, controls, decisions and operations",
    "store": "address of the store",
    "supervisor": "managed processes and their logs",
    "workspace.json": "the workspace that this state belongs to",
}


@command()
@output_option("text", "json", "yaml", "name")
@state_option
def show(form: str) -> None:
    """Show the state folder that commands use here, the workspace it belongs to, and its content.

    Examples:
        lehr state show
        cp -a "$(lehr state show -o name)" /backup/shop
        lehr state show --state /var/lib/lehr/shop-1f2e3d4c5b6a -o json
    """
    from lehr import wiring

    folder = found_state() or workspace_state(Path.cwd(), None)
    if form == "name":
        print(folder)
        return
    record = record_of(folder)
    workspace = Path.cwd() if record is None else record.path
    unused = workspace / UNUSED
    stored = has_store(folder)
    document = {
        "state": str(folder),
        "exists": folder.is_dir(),
        "workspace": str(workspace),
        "partition": (record and record.partition) or None,
        "store": wiring.store_place(folder, named_store()) if stored else None,
        "newest": _newest(folder) if stored else None,
        "running": running(folder),
        "contents": list(_contents(folder)) if folder.is_dir() else [],
        "unused": str(unused) if unused.exists() else None,
    }
    show_text(form, _lines(document), lambda: document)


def _newest(folder: Path) -> str | None:
    with open_store(folder) as store:
        found = [store.intent.newest(partition) for partition in store.intent.partitions()]
    return ", ".join(header.name for header in found if header is not None) or None


def _contents(folder: Path) -> Iterator[dict[str, Any]]:
    for entry in sorted(folder.iterdir()):
        meaning = _MEANING.get(entry.name) or _MEANING.get(
            entry.name.removesuffix("-wal").removesuffix("-shm")
        )
        yield {"name": entry.name, "bytes": _size(entry), "meaning": meaning}


def _size(path: Path) -> int:
    if not path.is_dir():
        return _length(path)
    return sum(_length(Path(above, name)) for above, _folders, names in os.walk(path) for name in names)


def _length(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # deleted in the meantime
        return 0


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"state       {document['state']}" + ("" if document["exists"] else " (does not exist yet)")
    yield f"workspace   {document['workspace']}"
    yield f"partition   {document['partition'] or 'unknown'}"
    yield f"store       {document['store'] or 'none yet'}"
    yield f"newest      {document['newest'] or 'nothing published yet'}"
    yield f"running     {'yes' if document['running'] else 'no'}"
    for item in document["contents"]:
        meaning = f"  {item['meaning']}" if item["meaning"] else ""
        yield f"  {item['name']:<18} {item['bytes']:>14,} bytes{meaning}"
    if document["unused"]:
        yield f"unused      {document['unused']}: state is never read from a workspace; remove it"
