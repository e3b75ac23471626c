"""The meaning of a provider's errors: wait, ask a person, or look what has happened. Pure.

Providers answer with texts for people. Words that nearly all of them take from their APIs and from Go's
network library decide what passes by waiting. After any other error, Lehr waits where that does no harm.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.text import one_line
from lehr.plugins.terraform.provider import Diagnostic, ProviderError, Severity
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden

_MOST = 400

_PASSING = re.compile(
    r"throttl|rate exceeded|rate limit|too ?many ?requests|requestlimitexceeded|slow ?down"
    r"|quota.*per (second|minute)|temporar|try again|service ?unavailable"
    r"|internal ?(server|service)? ?(error|failure)|\b(429|500|502|503|504)\b"
    r"|conflict.*(progress|operation)|operation.*in progress|being (created|modified|deleted)",
    re.IGNORECASE,
)
_UNANSWERED = re.compile(
    r"timed? ?out|timeout|deadline exceeded|connection (reset|refused|closed)|broken pipe|no such host"
    r"|unexpected eof|\beof\b|request send failed|network is unreachable|tls handshake|i/o|context canceled",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"access ?denied|forbidden|unauthori[sz]ed|not authori[sz]ed|permission|credential|expired ?token"
    r"|invalid.*token|signature ?does ?not ?match|\b(401|403)\b",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"not ?found|does ?n[o']t exist|does not exist|no such|nosuch|couldn'?t find|no matching|empty result"
    r"|returned no results|non-existent|\b404\b",
    re.IGNORECASE,
)
_EXISTS = re.compile(
    r"already ?exists?|already ?owned|entityalreadyexists|duplicate|name.*(in use|taken)|\b409\b",
    re.IGNORECASE,
)


class Meaning(enum.Enum):
    """The meaning of an error.

    MISSING: there is nothing. REFUSED: credentials or permissions. EXISTS: something has this name already.
    UNANSWERED: the API has not answered the provider, which may have changed something. PASSING: the API is
    busy. OTHER: anything else.
    """

    MISSING = enum.auto()
    REFUSED = enum.auto()
    EXISTS = enum.auto()
    UNANSWERED = enum.auto()
    PASSING = enum.auto()
    OTHER = enum.auto()


def meaning(diagnostics: Iterable[Diagnostic]) -> Meaning:
    """The meaning of the errors among these. A missing answer comes first, as it leaves most open."""
    text = " ".join(f"{item.summary} {item.detail}" for item in errors(diagnostics))
    kinds = (
        (_UNANSWERED, Meaning.UNANSWERED),
        (_REFUSED, Meaning.REFUSED),
        (_EXISTS, Meaning.EXISTS),
        (_MISSING, Meaning.MISSING),
        (_PASSING, Meaning.PASSING),
    )
    return next((kind for pattern, kind in kinds if pattern.search(text)), Meaning.OTHER)


def errors(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Those that end a call."""
    return [item for item in diagnostics if item.severity is Severity.ERROR]


def described(diagnostics: Sequence[Diagnostic], hidden: Hidden = NOTHING_HIDDEN) -> str:
    """Diagnostics in one line, shortened, without control characters and known secrets."""
    parts = []
    for item in diagnostics:
        place = f" (at {'.'.join(map(str, item.path))})" if item.path else ""
        detail = f": {item.detail}" if item.detail and item.detail != item.summary else ""
        parts.append(f"{item.summary}{detail}{place}")
    # Hidden before it is shortened: half a secret would not be found.
    text = hidden.shown(one_line(hidden.shown("; ".join(dict.fromkeys(parts)))))
    printable = "".join(one if one.isprintable() else "?" for one in text)
    return printable if len(printable) <= _MOST else f"{printable[:_MOST]}..."


def error_of_look(
    what: str, error: ProviderError, hidden: Hidden = NOTHING_HIDDEN, *, known_to_pass: bool = True
) -> LehrError:
    """The error of a call that only looks.

    Args:
        what: could not be done.
        known_to_pass: False if an error that is not known is one of intent.
    """
    why = described(errors(error.diagnostics), hidden)
    kind = meaning(error.diagnostics)
    if kind is Meaning.REFUSED:
        return StalledError(
            what,
            code="TER101",
            why=why,
            fix="correct the provider's credentials, or give them the permission",
        )
    if kind in (Meaning.PASSING, Meaning.UNANSWERED) or known_to_pass:
        return TransientError(what, code="TER102", why=why)
    return StalledError(what, code="TER103", why=why, fix="correct `config`")
