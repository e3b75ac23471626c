"""Scenarios over the shipped workspaces, made for fault plans.

In: the files of the examples. Out: `SCENARIOS`, by name.

Architecture invariant: everything but production is real: generators, types, checks and their
configuration are those of the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lehr.testing.sim.examples.hello import hello
from lehr.testing.sim.examples.shakespeare import shakespeare
from lehr.testing.sim.plans.scenario import Scenario

SCENARIOS: Mapping[str, Callable[[], Scenario]] = {"hello": hello, "shakespeare": shakespeare}
"""Makers of scenarios, by name."""
