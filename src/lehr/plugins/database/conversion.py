"""Cost of changing the type of a column that holds rows. Pure.

Type names are the database's own (`character varying(20)`). A change that is not known to keep every value
counts as destructive.
"""

from __future__ import annotations

import enum
import re

_PARAMETERS = re.compile(r"(?P<name>[^(]+?)(\((?P<values>[\d,]+)\))?")
_WHOLE = ("smallint", "integer", "bigint")


class Conversion(enum.Enum):
    """FREE: the rows stay as they are. REWRITE: every row is rewritten with the same value.

    LOSSY: values may be cut off or may not fit.
    """

    FREE = "free"
    REWRITE = "rewrite"
    LOSSY = "lossy"


def conversion(observed: str, intended: str) -> Conversion:
    """The effect of changing a column's type on its values."""
    before, after = _parsed(observed), _parsed(intended)
    if before is None or after is None:
        return Conversion.LOSSY
    (old, had), (new, has) = before, after
    if old in _WHOLE and not had:
        if new in _WHOLE and _WHOLE.index(new) >= _WHOLE.index(old):
            return Conversion.REWRITE
        if new == "numeric" and not has:
            return Conversion.REWRITE
    if (old, new) == ("real", "double precision"):
        return Conversion.REWRITE
    if _widens_text(old, had, new, has) or _widens_numeric(old, had, new, has):
        return Conversion.FREE
    return Conversion.LOSSY


def _widens_text(old: str, had: list[int], new: str, has: list[int]) -> bool:
    texts = ("character varying", "text")
    if old not in texts or new not in texts:
        return False
    return not has or (bool(had) and has[0] >= had[0])


def _widens_numeric(old: str, had: list[int], new: str, has: list[int]) -> bool:
    if old != "numeric" or new != "numeric":
        return False
    return not has or (len(had) == len(has) == 2 and has[0] >= had[0] and has[1] == had[1])


def _parsed(type: str) -> tuple[str, list[int]] | None:
    match = _PARAMETERS.fullmatch(type)
    if match is None:
        return None
    values = match["values"]
    return match["name"], [int(value) for value in values.split(",")] if values else []
