"""Rollouts: which units get new content, in which order.

In: units as they are, and a definition of waves. Out: the units to update now, and why not the others. Pure:
time and the state of units are values, so the same question always has the same answer.

| module | what |
|---|---|
| `units` | units, and amounts of them |
| `waves` | definitions of waves, and which unit belongs to which |
| `selection` | the units to update now |
| `question` | questions, and what is wrong with one |
| `forecast` | when waves start and end, as far as that is known |
| `forecast_run`, `open_times` | a rollout in virtual time |
| `forecast_inputs`, `push_samples`, `validation_samples` | what it is made from |
| `figures` | the state of rollouts, and units by how far they are |
| `comparison` | rollouts next to their forecasts |
| `forecast_text` | forecasts for people |
| `status` | how far rollouts are, and what they wait for |
| `services` | selections of other people, whose answers are checked |
"""

from lehr.rollouts.selection import Selection, select
from lehr.rollouts.units import Unit
from lehr.rollouts.waves import TargetSelection, Wave

__all__ = ["Selection", "TargetSelection", "Unit", "Wave", "select"]
