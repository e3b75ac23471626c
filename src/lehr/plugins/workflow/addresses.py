"""Where workflows run, as intent has it. Pure."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from lehr.base.hosts import is_loopback
from lehr.model.secret import Secret
from lehr.plugins.database.connection import Address, PostgresAddress, parse

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[!-~]([ -~]*[!-~])?(?!\n)$")]


class Temporal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Temporal server. Needs `pip install 'lehr[temporal]'`.

    Attributes:
        address: `host:port` of the server.
        namespace: on the server.
        task_queue: which the workers of the workflow poll.
        tls: whether the connection is encrypted.
        api_key: sent with each request; requires `tls`, or an address on this machine.
    """

    address: str
    task_queue: Name
    namespace: Name = "default"
    tls: bool = False
    api_key: Secret | None = None

    def __post_init__(self) -> None:
        found = _ADDRESS.fullmatch(self.address)
        if found is None or not 0 < int(found[2]) < 65_536:
            raise ValueError("`address` must be host:port, such as 127.0.0.1:7233")
        if self.api_key is not None and not self.tls and not is_loopback(found[1].strip("[]")):
            raise ValueError("`api_key` would be sent without encryption: set `tls`")


class Dbos(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An application with DBOS, reached by its system database. Needs `pip install 'lehr[dbos]'`.

    Attributes:
        database: the system database: `postgresql://USER@HOST/DATABASE`, without a password, or
            `sqlite:PATH`.
        password: of the user.
        queue: which the application polls.
        schema: of the tables of DBOS in PostgreSQL.
        application: name of the application; empty if the database belongs to one only.
    """

    database: str
    queue: Name
    password: Secret | None = None
    schema: Name = "dbos"
    application: Annotated[str, msgspec.Meta(max_length=200)] = ""

    def __post_init__(self) -> None:
        try:
            address = self.place
        except ValueError as error:
            raise ValueError(str(error).replace("`connection`", "`database`")) from None
        if self.password is not None and not isinstance(address, PostgresAddress):
            raise ValueError("`password` is only for PostgreSQL")

    @property
    def place(self) -> Address:
        """Where the database is."""
        return parse(self.database)


class EngineAddress(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where workflows run. Exactly one must be given.

    Attributes:
        temporal: a Temporal server.
        dbos: an application with DBOS.
    """

    temporal: Temporal | None = None
    dbos: Dbos | None = None

    def __post_init__(self) -> None:
        if (self.temporal is None) == (self.dbos is None):
            raise ValueError("exactly one of `temporal` and `dbos` must be given")
