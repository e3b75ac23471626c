"""What may be changed, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import StalledError


class Replace(msgspec.Struct, frozen=True, kw_only=True):
    """Give the value at `path`, which must be there, another value.

    Attributes:
        file: path in the source, with slashes.
        path: where in the file (`lehr.editing.paths`).
        value: plain data, as a file of intent can hold it.
        expect: what the value must be before; unset for whatever it is.
        retype: allow a value of another kind: a text for a number, say.
    """

    file: str
    path: str
    value: Any
    expect: Any = msgspec.UNSET
    retype: bool = False


class Compute(msgspec.Struct, frozen=True, kw_only=True):
    """Give the value at `path` what `function` makes of it: a counter, an addition to a list.

    When somebody else changes the value meanwhile, the function is called again with that.
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
    """Take away the key or item at `path`, which must be there."""

    file: str
    path: str
    expect: Any = msgspec.UNSET


Change = Replace | Compute | Add | Delete


class EditError(StalledError):
    """An edit is refused, and nothing was written.

    Attributes:
        diagnostics: why; each points into the file as it is now.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        first = diagnostics[0]
        what = f"{first.at}: {first.what}" if first.at else first.what
        super().__init__(what, code=first.code, why=first.why, fix=first.fix)
        self.diagnostics = diagnostics
