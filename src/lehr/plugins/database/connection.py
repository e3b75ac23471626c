"""Where a database is: `postgresql://...` or `sqlite:PATH`, without a password. Pure."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PATHS = ("passfile", "sslrootcert", "sslcert", "sslkey")
_PARAMETERS = ("host", "port", "user", "sslmode", *_PATHS)
_PORT = re.compile(r"[0-9]{0,5}")
_LONGEST = 1000


class PostgresAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A database of a PostgreSQL server.

    Attributes:
        database: its name.
        host: a name or address, or the directory of a Unix socket if it has a slash; empty for
            the driver's default.
        port: empty for the driver's default.
        user: empty for the driver's default.
        parameters: further ones of libpq, by name; all but `sslmode` are paths.
    """

    database: str
    host: str = ""
    port: str = ""
    user: str = ""
    parameters: dict[str, str] = {}

    @property
    def place(self) -> str:
        """Identifies the database, whichever user connects."""
        return f"postgresql://{self.host}:{self.port or 5432}/{self.database}"

    @property
    def paths(self) -> tuple[str, ...]:
        """Names of the parameters that are paths."""
        return tuple(name for name in self.parameters if name in _PATHS)


class SqliteAddress(msgspec.Struct, frozen=True):
    """A file of SQLite."""

    path: str

    @property
    def place(self) -> str:
        """Identifies the database."""
        return f"sqlite:{self.path}"


Address = PostgresAddress | SqliteAddress


def parse(text: str) -> Address:
    """The database that `text` names.

    Raises:
        ValueError: it does not name a database, or holds a password.
    """
    if len(text) > _LONGEST or _CONTROL.search(unquote(text)):
        raise ValueError("`connection` is too long or has a control character")
    if text.startswith("sqlite:"):
        path = text.removeprefix("sqlite:")
        if not path or path.endswith("/") or path.startswith(":"):
            raise ValueError("`connection` must name a file: sqlite:data/plays.sqlite")
        return SqliteAddress(path)
    if not text.startswith("postgresql://"):
        raise ValueError("`connection` must start with postgresql:// or sqlite:")
    return _postgres(text)


def _postgres(text: str) -> PostgresAddress:
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError("`connection` is not a valid URL") from None
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.password is not None or "password" in given:
        raise ValueError(
            "`connection` contains a password, which everyone who reads intent would see: use a socket, a "
            "certificate or `passfile`, or refer to it in `password`"
        )
    for name in given:
        if name not in _PARAMETERS:
            raise ValueError(
                f"`connection` has the unknown parameter {name!r}; known parameters: {', '.join(_PARAMETERS)}"
            )
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database or parts.fragment:
        raise ValueError("`connection` must name a database: postgresql://host/database")
    host = given.pop("host", "") or unquote(parts.hostname or "")
    port = given.pop("port", "") or _port(parts.netloc)
    if "," in host or not _PORT.fullmatch(port) or (port and not 0 < int(port) < 65_536):
        raise ValueError("`connection` must have one host and one port from 1 to 65535")
    user = given.pop("user", "") or unquote(parts.username or "")
    return PostgresAddress(database=database, host=host, port=port, user=user, parameters=given)


def _port(place: str) -> str:
    """Parse `user@host:port` as text: an error about it must not show a possible password."""
    return place.rpartition("]")[2].rpartition("@")[2].partition(":")[2]
