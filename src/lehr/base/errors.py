"""Exceptions: this step cannot continue.

Errors in what a user wrote are not exceptions but values (`lehr.base.diagnostics`).
Adapters translate a library's errors into these at the edge, with `raise ... from`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

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


class FencedError(TransientError):
    """A newer control plane has written this asset, so a push was refused. Nothing was changed."""


class WaitingError(LehrError):
    """Cannot continue before `until` (wall-clock seconds since the epoch); not a failure."""

    def __init__(self, what: str, *, until: float, code: str = "", why: str = "", fix: str = "") -> None:
        super().__init__(what, code=code, why=why, fix=fix)
        self.until = until


class NeedError(LehrError):
    """Something has to be read from the store first. Let it pass: the call is repeated afterwards."""


class StalledError(LehrError):
    """Trying again is useless until a person acts or the intent changes."""


@contextlib.contextmanager
def raised_as(
    kind: type[LehrError],
    what: str,
    *,
    code: str,
    fix: str = "",
    on: type[Exception] | tuple[type[Exception], ...] = OSError,
) -> Iterator[None]:
    """Turn errors of a library or of the system into one of ours. The reason is their message.

    Args:
        on: the errors; for a single one of the system, the message is given without number and path.
    """
    try:
        yield
    except on as error:
        why = error.strerror if isinstance(error, OSError) and not isinstance(on, tuple) else None
        raise kind(what, code=code, why=why or str(error) or type(error).__name__, fix=fix) from error
