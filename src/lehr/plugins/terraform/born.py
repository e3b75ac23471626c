"""Keeps the secrets that a provider makes, in files that intent names and only their owner can read."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.errors import StalledError, raised_as
from lehr.plugins.terraform.payload import DISCARD
from lehr.plugins.terraform.provider import Value
from lehr.sdk.protected import Protected


async def keep(born: dict[str, str], value: Value, blocking: Blocking, protected: Protected) -> str:
    """Write each secret of a new resource to its file, and return one line on where they are.

    Args:
        born: `file:PATH` or `discard`, by attribute, with dots where it is nested.

    Raises:
        StalledError: a file cannot be written. The secret is lost: the resource has to be created again.
    """
    kept = []
    for name, place in born.items():
        secret = _at(value, name.split("."))
        if place == DISCARD or secret is None:
            continue
        path = Path(place.removeprefix("file:"))
        await blocking.run(_write, path, _bytes(secret), protected)
        kept.append(f"{name} in {path}")
    return f"kept {', '.join(kept)}" if kept else ""


def _write(path: Path, content: bytes, protected: Protected) -> None:
    real = os.path.join(os.path.realpath(path.parent), path.name)
    if folder := protected.why(real):
        raise StalledError(
            f"a secret must not be written to {path}",
            code="TER121",
            why=f"it is in {folder}",
            fix="correct `born_secrets`, and delete the resource at its provider: Lehr creates it again",
        )
    making = path.with_name(f".{path.name}.new")
    with raised_as(
        StalledError,
        f"a secret that was just made cannot be written to {path}",
        code="TER122",
        fix="correct `born_secrets`, and delete the resource at its provider: Lehr creates it again",
    ):
        with contextlib.suppress(FileNotFoundError):
            making.unlink()
        handle = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        making.replace(path)


def _at(value: Value, names: list[str]) -> Value:
    for name in names:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _bytes(secret: Value) -> bytes:
    return secret.encode() if isinstance(secret, str) else msgspec.json.encode(secret)
