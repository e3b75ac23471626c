"""Where a PostgreSQL store is: `postgresql://[user@]host/database[?schema=NAME]`, as libpq reads it."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from lehr.base.errors import StalledError

SCHEMES = ("postgresql://", "postgres://")
SCHEMA = "lehr"
REGISTER = "lehr_claims"
"""The schema of the register of claims, which all stores of a database share."""

_PORTS = re.compile(r"[0-9,]*")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SECRETS = ("password", "sslpassword")
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "application_name": "lehr",
}
_FIX = "write postgresql://USER@HOST/DATABASE, and put a password into ~/.pgpass or PGPASSWORD"


class Address:
    """A schema of a database, and how to reach it.

    Attributes:
        schema: holds all tables of this store, and nothing else.
        place: for messages: without credentials.
        url: the same for another process, without a password.
    """

    def __init__(self, text: str) -> None:
        """Read `text`.

        Raises:
            StalledError: it is not an address. The message does not quote it, since it may hold a password.
        """
        if not text.startswith(SCHEMES):
            raise StalledError(
                "the store is not the address of a PostgreSQL database", code="STO112", fix=_FIX
            )
        try:
            url, self.schema = _without_schema(text)
            known = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        except (psycopg.Error, ValueError):
            # From None: the driver's message quotes what it cannot read.
            raise StalledError("the address of the store cannot be read", code="STO113", fix=_FIX) from None
        if not _PORTS.fullmatch(known.get("port", "")):
            raise StalledError("the port in the address of the store is not valid", code="STO114", fix=_FIX)
        if not _NAME.fullmatch(self.schema) or self.schema.startswith("pg_") or self.schema == REGISTER:
            raise StalledError(
                "the name of the store's schema is not valid",
                code="STO115",
                fix="choose a name of lower-case letters, digits and underscores: ?schema=lehr; but not"
                f" {REGISTER}, the register of claims",
            )
        self._conninfo = make_conninfo(**_DEFAULTS | known)
        shown = {name: value for name, value in known.items() if name not in _SECRETS}
        self.url = f"postgresql:///?{urlencode({**shown, 'schema': self.schema})}"
        port = f":{known['port']}" if "port" in known else ""
        self.place = f"postgresql://{known.get('host', '')}{port}/{known.get('dbname', '')}"
        if self.schema != SCHEMA:
            self.place += f"?schema={self.schema}"

    @property
    def conninfo(self) -> str:
        """Connection parameters for libpq. Holds the password, if any: never show it."""
        return self._conninfo

    def __repr__(self) -> str:
        return f"Address({self.place})"


def _without_schema(text: str) -> tuple[str, str]:
    """The URL as libpq reads it, and our schema."""
    parts = urlsplit(text)
    given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    rest = [(name, value) for name, value in given if name != "schema"]
    url = urlunsplit(parts._replace(query=urlencode(rest)))
    if not parts.netloc:  # urlunsplit drops slashes that libpq needs
        url = f"postgresql://{parts.path or '/'}?{urlencode(rest)}"
    return url, dict(given).get("schema", SCHEMA)
