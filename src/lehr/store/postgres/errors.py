"""Translates the driver's errors. No message contains a password."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec
import psycopg

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.damage import DamagedError
from lehr.store.postgres.address import Address

DAMAGE = (
    psycopg.DataError,
    psycopg.InternalError,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedTable,
)
"""Raised by the server if tables are damaged, or not the ones that we made."""

_AWAY = "check that it runs and is reachable; nothing was lost, and Lehr continues automatically"


def away(address: Address, *, why: str) -> TransientError:
    """The server cannot be reached."""
    return TransientError(
        f"the PostgreSQL server of {address.place} does not answer", code="STO122", why=why, fix=_AWAY
    )


def message_of(error: BaseException) -> str:
    """The message of the server or the driver, on one line."""
    return " ".join(str(error).split())[:300]


@contextlib.contextmanager
def translated(address: Address) -> Iterator[None]:
    """Translate exceptions of the driver, and of decoding stored values, into ours."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, address) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(error, address) from error
    except DamagedError as error:
        raise error.at(address.place) from error


def translate(error: psycopg.Error, address: Address) -> LehrError:
    """Our exception for `error`."""
    state = error.sqlstate or ""
    for prefix, make in _BY_STATE:
        if state.startswith(prefix):
            return make(error, address)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return away(address, why=message_of(error))
    if isinstance(error, psycopg.IntegrityError | psycopg.DataError):
        return _broken_rule(error, address)
    return TransientError(
        f"the store at {address.place} failed",
        code="STO123",
        why=message_of(error),
        fix="check the server; nothing was lost, and Lehr retries automatically",
    )


def _stopped(error: psycopg.Error, address: Address) -> LehrError:
    return away(address, why=message_of(error))


def _locked(error: psycopg.Error, address: Address) -> LehrError:
    return TransientError(
        f"the store at {address.place} is locked",
        code="STO124",
        why="another program holds it",
        fix="stop the other program; nothing was written",
    )


def _full(error: psycopg.Error, address: Address) -> LehrError:
    return TransientError(
        f"the PostgreSQL server of {address.place} is out of resources",
        code="STO125",
        why=message_of(error),
        fix="give it more disk, memory or connections; nothing was lost, and Lehr continues automatically",
    )


def _only_reads(error: psycopg.Error, address: Address) -> LehrError:
    return TransientError(
        f"the PostgreSQL server of {address.place} accepts no writes",
        code="STO126",
        why=message_of(error),
        fix="name the primary, not a standby; nothing was lost, and Lehr retries automatically",
    )


def _forbidden(error: psycopg.Error, address: Address) -> LehrError:
    return StalledError(
        f"the store at {address.place} cannot be opened",
        code="STO127",
        why=message_of(error),
        fix="check that the user is right, may connect, and may create a schema in the database",
    )


def _missing(error: psycopg.Error, address: Address) -> LehrError:
    return StalledError(
        f"there is no store at {address.place}",
        code="STO128",
        why=message_of(error),
        fix="create the database; `lehr run` creates the schema and the tables",
    )


def _damaged(error: Exception, address: Address) -> LehrError:
    return StalledError(
        f"the store at {address.place} cannot be read",
        code="STO129",
        why=message_of(error),
        fix="see `lehr store check`; restore it from a backup, or name an empty database: Lehr then starts "
        "over from git and production, without its history",
    )


def _broken_rule(error: psycopg.Error, address: Address) -> LehrError:
    # A retry would fail forever, and hold up every write behind it.
    return StalledError(
        f"the store at {address.place} refused a write that breaks its rules",
        code="STO130",
        why=message_of(error),
        fix="this is a bug in Lehr: report it; nothing was written, and `lehr run` can be started again",
    )


_BY_STATE = (
    ("08", _stopped),
    ("57P", _stopped),
    ("25P03", _stopped),  # idle in a transaction for too long: this process was stopped
    ("55P03", _locked),
    ("40", _locked),
    ("53", _full),
    ("25006", _only_reads),
    ("28", _forbidden),
    ("42501", _forbidden),
    ("3D", _missing),
    ("3F", _missing),
    ("42P01", _missing),
    ("XX00", _damaged),
    ("22", _broken_rule),
    ("23", _broken_rule),
)
"""By the beginning of SQLSTATE (PostgreSQL's manual, appendix A)."""
