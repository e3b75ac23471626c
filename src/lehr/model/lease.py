"""Leases: which process acts on a partition, and until when."""

from __future__ import annotations

from typing import NamedTuple

from lehr.model.asset import Partition

LEASE_SECONDS = 30.0
"""How long a lease lasts unless it is renewed."""

WHOLE = 0
"""The share of a partition that is all of it; there is no other yet."""


class Lease(NamedTuple):
    """The right of one process to act on a share of a partition.

    Attributes:
        owner: names the process, the same after a restart: it takes back what it had.
        epoch: raised each time the lease is taken; it identifies who has it.
        until: when it ends, in seconds of the store's clock. It still belongs to its owner after that, until
            another one takes it.
    """

    partition: Partition
    share: int = WHOLE
    owner: str = ""
    epoch: int = 0
    until: float = 0.0
