"""A process that has pushes admitted as fast as it can, in competition with others; prints what it got.

python -m tests.integration.store.contender URL NAME LIMIT ASSET...
"""

from __future__ import annotations

import json
import sys

from lehr.base.errors import TransientError
from lehr.model.decision import Reservation
from lehr.store.postgres import Address, PostgresStore
from lehr.testing.conformance.store.subject import request


def main(url: str, name: str, limit: str, *assets: str) -> None:
    """Ask for one push of each asset, each of which takes a share of the same limit."""
    store = PostgresStore(Address(url))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    admitted: list[str] = []
    refused: list[str] = []
    for asset in assets:
        share = Reservation("limit", int(limit))
        ask = request(store, f"{name}-{asset}", asset, reservations=(share,))
        while True:
            try:
                [answer] = store.commit([ask])
                break
            except TransientError:
                continue
        (admitted if answer is None else refused).append(asset if answer is None else answer.reason)
    store.close()
    json.dump({"admitted": admitted, "refused": refused}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
