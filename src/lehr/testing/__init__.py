"""The shipped test kit: virtual time, in-memory readers, conformance suites.

In: a plugin, check or program under test, and a seed. Out: a run that is the same every
time, and suites of rules that any implementation of a protocol can be held to.

Architecture invariant: of the program, only the commands of `lehr sim` import this package.
"""

from __future__ import annotations

from lehr.testing.virtual import VirtualClock, VirtualLoop, run

__all__ = ["VirtualClock", "VirtualLoop", "run"]
