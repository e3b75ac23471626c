"""Canonical bytes and content digests.

Architecture invariant: one encoder makes all canonical bytes. Encoders disagree on
floats and key order; two of them would make two digests of one content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NewType

import msgspec

Digest = NewType("Digest", str)
"""BLAKE2b of 160 bits as 40 hexadecimal characters."""

_SIZE = 20
_encoder = msgspec.json.Encoder(order="sorted")


def canonical(value: Any) -> bytes:
    """`value` (msgspec-encodable) as JSON with sorted keys: equal values, equal bytes."""
    return _encoder.encode(value)


def digest_bytes(content: bytes) -> Digest:
    """Digest of `content`."""
    return Digest(hashlib.blake2b(content, digest_size=_SIZE).hexdigest())


def digest(value: Any) -> Digest:
    """Digest of the canonical bytes of `value`."""
    return digest_bytes(canonical(value))


def digest_all(parts: Iterable[str]) -> Digest:
    """Digest of a sequence of strings. The parts' borders count: `["ab"]` is not `["a", "b"]`."""
    framed = "".join([f"{len(part)}:{part}" for part in parts])
    return digest_bytes(framed.encode())


class RunningDigest:
    """`digest_all` of parts that come one after the other."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=_SIZE)

    def add(self, part: str) -> None:
        """The next part."""
        self._hash.update(f"{len(part)}:{part}".encode())

    def digest(self) -> Digest:
        """Of the parts so far."""
        return Digest(self._hash.hexdigest())


def short(value: str) -> str:
    """The first 12 characters: enough for readers to distinguish digests."""
    return value[:12]
