"""Which requests may be answered: with the token of the state, or the cookie that a ticket gave a browser."""

from __future__ import annotations

import hashlib
import hmac

from lehr.base.chance import new_token
from lehr.http.hooks import HOOK_PATH

SIGN_IN_PATH = "/sign-in"
"""Where a browser exchanges a ticket for its cookie."""

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics", HOOK_PATH, SIGN_IN_PATH})
"""Answered without a token: programs that watch a process have none, and webhooks are signed."""

OPEN_FOLDER = "/static/"
"""The files of the page, which are the same in every installation."""

TICKET_SECONDS = 300.0
"""How long a browser has to use a ticket."""


def new_ticket(token: str, now: float) -> str:
    """A ticket. Only those who know the token can make one, and the token never reaches a browser.

    Args:
        now: seconds since the epoch, by any clock that differs little from the server's.
    """
    issued = f"{now + TICKET_SECONDS:.0f}.{new_token()}"
    return f"{issued}.{_derived(token.encode(), f'ticket {issued}')}"


class Access:
    """Decides about requests to one server, without I/O.

    Invariant: a ticket works once, and the cookie is derived from the token by a function that cannot be
        reversed: a browser sends its cookies to every port of a host, whatever listens there.

    Attributes:
        public_read: whether requests without the token are answered, except dry runs.
    """

    def __init__(self, token: str, *, public_read: bool = False) -> None:
        """Raises `ValueError` if the token is empty, which would admit every request."""
        if not token:
            raise ValueError("the token is empty")
        self._token = token.encode()
        self.public_read = public_read
        self._used: dict[str, float] = {}
        self._name = f"lehr-{_derived(self._token, 'cookie name')[:16]}"
        self._cookie = _derived(self._token, "cookie")

    def admits(self, path: str, authorization: str = "", cookies: str = "") -> bool:
        """Whether a request may be answered, given its `Authorization` and `Cookie` headers."""
        if self.public_read or path in OPEN_PATHS or path.startswith(OPEN_FOLDER):
            return True
        return self.trusts(authorization, cookies)

    def trusts(self, authorization: str = "", cookies: str = "") -> bool:
        """Whether a request has the token, or the cookie, given its `Authorization` and `Cookie` headers."""
        scheme, _space, given = authorization.partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(_bytes(given.strip()), self._token):
            return True
        pairs = (item.strip().partition("=") for item in cookies.split(";"))
        return any(
            name == self._name and hmac.compare_digest(_bytes(value), self._cookie.encode())
            for name, _equals, value in pairs
        )

    def set_cookie(self, ticket: str, now: float) -> str | None:
        """The `Set-Cookie` header for a ticket; None if it is not one, or was used, or is too old."""
        self._used = {known: until for known, until in self._used.items() if until > now}
        issued, _dot, proof = ticket.rpartition(".")
        expected = _derived(self._token, f"ticket {issued}")
        if not hmac.compare_digest(_bytes(proof), expected.encode()) or issued in self._used:
            return None
        until = float(issued.partition(".")[0])
        if until <= now:
            return None
        self._used[issued] = until
        return f"{self._name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"


def _derived(token: bytes, purpose: str) -> str:
    return hmac.new(token, _bytes(purpose), hashlib.sha256).hexdigest()


def _bytes(given: str) -> bytes:
    return given.encode("utf-8", "surrogateescape")  # `compare_digest` takes only ASCII strings
