"""Landlock: restricts a process to opening files that it may read."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from lehr.generate.sandbox.syscalls import syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_DIRECTORY = 1 << 2, 1 << 3
_ALL_NETWORK, _ALL_SCOPES = 0b11, 0b11  # TCP; abstract sockets and signals


def version() -> int:
    """Version of the kernel's interface, counted from 1.

    Raises:
        OSError: the kernel does not support it, or it is disabled.
    """
    return syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))


class Ruleset:
    """Allows reading everything beneath these paths. Writing, and using TCP ports, is denied.

    Raises:
        OSError: as `version`.
    """

    def __init__(self, readable: Iterable[str]) -> None:
        attributes = _attributes(version())
        self._descriptor = syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
        for path in readable:
            self._allow(path)

    def _allow(self, path: str) -> None:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # paths that are missing or unreadable need no permission
            return
        try:
            access = _READ_FILE | (_READ_DIRECTORY if os.path.isdir(path) else 0)
            rule = struct.pack("=Qi", access, descriptor)
            syscall(_ADD, self._descriptor, _PATH_BENEATH, rule, ctypes.c_uint32(0))
        finally:
            os.close(descriptor)

    def apply(self) -> None:
        """Apply it to this process permanently. `no_new_privs` must be set.

        Raises:
            OSError: the kernel refuses.
        """
        syscall(_RESTRICT, self._descriptor, ctypes.c_uint32(0))


def _attributes(version: int) -> bytes:
    """Everything that this version can restrict."""
    files = (1 << 13) - 1
    files |= (
        (1 << 13 if version >= 2 else 0) | (1 << 14 if version >= 3 else 0) | (1 << 15 if version >= 5 else 0)
    )
    parts = [files]
    if version >= 4:
        parts.append(_ALL_NETWORK)
    if version >= 6:
        parts.append(_ALL_SCOPES)
    return struct.pack(f"={len(parts)}Q", *parts)
