"""Ports for the servers that tests start."""

from __future__ import annotations

import random
import socket

# Below the range that kernels take ports of outgoing connections from.
_LOWEST, _HIGHEST = 20_000, 32_000
_TRIES = 200

_claims: list[socket.socket] = []


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that are free, and that no other test run will be given.

    A port that is merely free may be taken by somebody else a moment later. So they are claimed by
    the name of an abstract socket, which the kernel frees when this process ends.
    """
    for _ in range(_TRIES):
        first = random.randrange(_LOWEST // count, _HIGHEST // count) * count
        claims = [socket.socket(socket.AF_UNIX) for _ in range(count)]
        try:
            for offset, claim in enumerate(claims):
                claim.bind(f"\0lehr-test-port-{first + offset}")
                _try(first + offset)
        except OSError:
            for claim in claims:
                claim.close()
            continue
        _claims.extend(claims)
        return first
    raise AssertionError(f"no {count} free ports in a row were found")


def _try(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind(("127.0.0.1", port))
