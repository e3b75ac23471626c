"""The servers of this user on this machine: where each answers, for which state, and with which token.

    STATE/http-token            admits its bearer to every server of that state
    STATES/servers/HOST:PORT    names the state, and the process that answers there

The token is that of the state, not of a process, so that pages and programs stay admitted when a server is
restarted. If the file is removed, the next server makes a new token.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from lehr.base.chance import new_token
from lehr.base.durable import replace
from lehr.base.errors import LehrError
from lehr.control.lock import has_open
from lehr.control.state_folder import make, require_own, states, usable

TOKEN_VARIABLE = "LEHR_TOKEN"  # noqa: S105 -- the name of a variable
TOKEN_FILE = "http-token"  # noqa: S105 -- the name of a file

_SERVERS = "servers"
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- compared with, not listened on


class HttpServer(msgspec.Struct, frozen=True):
    """A server that answers now.

    Attributes:
        state: the folder whose token it takes.
        process: the process that answers.
    """

    url: str
    state: str
    process: int

    @property
    def local_url(self) -> str:
        """The URL for clients on this machine."""
        port, host = urlsplit(self.url).port, urlsplit(self.url).hostname or ""
        return f"http://127.0.0.1:{port}" if host in _ANY else self.url

    def answers(self, url: str) -> bool:
        """Whether a request to `url` certainly reaches this server, and no program of another user."""
        here, there = urlsplit(self.url), urlsplit(url)
        hosts = {here.hostname, _ANY.get(here.hostname or "", here.hostname)}
        return there.scheme == here.scheme and there.hostname in hosts and there.port == here.port


def make_token(state: Path) -> str:
    """The token of a state, which is made if there is none.

    Raises:
        LehrError: the state folder cannot be used.
    """
    require_own(state)
    with usable(state):
        make(state)
        descriptor = os.open(state / TOKEN_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another server may be starting
            if not (token := file.read().strip()):
                token = new_token()
                file.write(f"{token}\n")
                file.flush()
                os.fsync(file.fileno())
            return token


def token_of(state: Path) -> str:
    """The token of a state; empty if there is none, or this user may not read it."""
    try:
        require_own(state, repair=False)
        return (state / TOKEN_FILE).read_text().strip()
    except (OSError, ValueError, LehrError):
        return ""


@contextlib.contextmanager
def recorded(url: str, state: Path) -> Iterator[None]:
    """While in this context, commands of this user find the server.

    Where there is no place for the record, they do not, and nothing else is lost.
    """
    path = None
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError, LehrError):
            folder = states() / _SERVERS
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            require_own(folder)
            path = folder / urlsplit(url).netloc
            found = HttpServer(url, str(state.absolute()), os.getpid())
            replace(path, msgspec.json.encode(found), 0o600)
            held.enter_context(path.open("rb"))  # as long as this process has it open, it answers
        try:
            yield
        finally:
            left = None if path is None else _read(path)
            if path is not None and left is not None and left.process == os.getpid():
                path.unlink(missing_ok=True)


def running_servers() -> list[HttpServer]:
    """All servers of this user that answer now."""
    try:
        folder = states() / _SERVERS
        require_own(folder, repair=False)
        return [found for path in sorted(folder.iterdir()) if (found := _read(path)) is not None]
    except (OSError, LehrError):
        return []


def token_for(url: str) -> str:
    """The token to send to the server at `url`: that of the environment, or of the state it answers for."""
    if given := os.environ.get(TOKEN_VARIABLE, "").strip():
        return given
    return next((token_of(Path(item.state)) for item in running_servers() if item.answers(url)), "")


def _read(path: Path) -> HttpServer | None:
    """The server that a file records; None if it has ended."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=HttpServer)
    except (OSError, msgspec.DecodeError):
        return None
    return found if has_open(found.process, path) else None
