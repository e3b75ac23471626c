"""Exceptions: this step cannot go on.

Errors in what a user wrote are not exceptions but values (`lehr.base.diagnostics`).
Adapters translate a library's errors into these at the edge, with `raise ... from`.
"""

from __future__ import annotations

from lehr.base.text import writable

DEFECT = "BUG101"
"""Code of every unforeseen error."""


class LehrError(Exception):
    """Base of all our exceptions. Their messages can always be written down, whatever they quote.

    Attributes:
        code: stable (`STO101`), see `docs/reference/errors.md`; errors of other people's plugins have none.
        what: what happened, one sentence without a full stop.
        why: the reason, as far as it is known.
        fix: what the reader can do about it.
    """

    def __init__(self, what: str, *, code: str = "", why: str = "", fix: str = "") -> None:
        self.code = code
        self.what = writable(what)
        self.why = writable(why)
        self.fix = writable(fix)
        super().__init__(self.what)

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        fix = f" ({self.fix})" if self.fix else ""
        return f"{self.what}{why}{fix}"


class TransientError(LehrError):
    """May pass: try again, with backoff."""


class WaitingError(LehrError):
    """Cannot go on before `until` (wall-clock seconds since the epoch); not a failure."""

    def __init__(self, what: str, *, until: float, code: str = "", why: str = "", fix: str = "") -> None:
        super().__init__(what, code=code, why=why, fix=fix)
        self.until = until


class StalledError(LehrError):
    """Trying again is useless until a person acts or the intent changes."""
