"""The kinds of changes, and the error when one is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import StalledError


class Replace(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the value at `path`, which must exist.

    Attributes:
        file: path in the source, with slashes.
        path: place in the file (`lehr.editing.paths`).
        value: plain data, as a file of intent can hold it.
        expect: the required old value; unset for any.
        retype: allow a value of another kind, such as a string for a number.
    """

    file: str
    path: str
    value: Any
    expect: Any = msgspec.UNSET
    retype: bool = False


class Compute(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the value at `path` by `function` of it: a counter, an addition to a list.

    If the value changes concurrently, the function is called again with the new one.
    """

    file: str
    path: str
    function: Callable[[Any], Any]


class Add(msgspec.Struct, frozen=True, kw_only=True):
    """Add a key that a mapping does not have, or (`-` as the path's last part) an item to a list."""

    file: str
    path: str
    value: Any


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """Remove the key or item at `path`, which must exist."""

    file: str
    path: str
    expect: Any = msgspec.UNSET


Change = Replace | Compute | Add | Delete


class EditError(StalledError):
    """An edit was refused, and nothing was written.

    Attributes:
        diagnostics: the reasons; each points into the current file.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        first = diagnostics[0]
        what = f"{first.at}: {first.what}" if first.at else first.what
        super().__init__(what, code=first.code, why=first.why, fix=first.fix)
        self.diagnostics = diagnostics
