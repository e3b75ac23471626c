"""What the fake provider manages, as files: they survive it, and tests look at them and change them."""

from __future__ import annotations

import json
import os
import urllib.parse
from pathlib import Path
from typing import Any

from lehr.plugins.terraform.provider import Number


class Store:
    """Resources by type and id, one file each: what an API would show of them."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def note_process(self) -> None:
        """Note who uses it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "pid").write_text(str(os.getpid()))

    def put(self, type_: str, id_: str, shown: dict[str, Any]) -> None:
        path = self._path(type_, id_)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps(shown, default=_digits))
        os.replace(new, path)

    def get(self, type_: str, id_: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self._path(type_, id_).read_text(), object_hook=_number)
        except FileNotFoundError:
            return None
        return found

    def change(self, type_: str, id_: str, **changes: Any) -> None:
        """Change a resource behind the back of all."""
        found = self.get(type_, id_)
        assert found is not None
        self.put(type_, id_, found | changes)

    def delete(self, type_: str, id_: str) -> None:
        self._path(type_, id_).unlink(missing_ok=True)

    def ids(self, type_: str) -> list[str]:
        paths = (self.folder / type_).glob("*.json")
        return sorted(urllib.parse.unquote(path.stem) for path in paths)

    def new_id(self, type_: str) -> str:
        """An id that no resource has had."""
        folder = self.folder / "ids"
        folder.mkdir(parents=True, exist_ok=True)
        number = len(os.listdir(folder)) + 1
        while True:
            try:
                (folder / str(number)).touch(exist_ok=False)
            except FileExistsError:
                number += 1
            else:
                return f"{type_.removeprefix('fake_')}-{number}"

    def _path(self, type_: str, id_: str) -> Path:
        return self.folder / type_ / f"{urllib.parse.quote(id_, safe='')}.json"


def _digits(value: Any) -> Any:
    assert isinstance(value, Number)
    return {"digits of a number": value.digits}


def _number(found: dict[str, Any]) -> Any:
    return Number(found["digits of a number"]) if "digits of a number" in found else found
