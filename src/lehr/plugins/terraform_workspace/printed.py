"""Reads what commands print: documents, and the log of an `apply`. Blocks."""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any

from lehr.plugins.terraform_workspace import messages

_MOST_LOG = 16 << 20
_CHUNK = 1 << 20
_MOST_DIGITS = 18


def document(output: bytes) -> dict[str, Any] | None:
    """The JSON object that `output` is; None if it is not one. Numbers that Lehr cannot store are text."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(output, parse_int=_integer, parse_float=_number)
        if isinstance(found, dict):
            return found
    return None


def _integer(text: str) -> int | str:
    """An integer; as text, if it is too large for what Lehr stores."""
    return int(text) if len(text) <= _MOST_DIGITS else text


def _number(text: str) -> float | str:
    return value if math.isfinite(value := float(text)) else text


class Follow:
    """Reads a growing file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0
        self._rest = b""
        self.more = True
        """Whether the last look has found something."""

    def lines(self) -> list[dict[str, Any]]:
        """The objects in whole lines that were written since the last call. Blocks."""
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            file.seek(self._place)
            chunk = file.read(_CHUNK)
            self._place += len(chunk)
            self.more = bool(chunk)
            whole, _, self._rest = (self._rest + chunk).rpartition(b"\n")
            return list(messages.lines_of(whole))
        self.more = False
        return []


def end_of(path: Path) -> bytes:
    """The end of a file, where errors are."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _MOST_LOG))
            return file.read()
    except OSError:
        return b""
