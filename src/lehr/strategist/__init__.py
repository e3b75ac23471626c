"""The Strategist: releases new content of governed assets, unit by unit, by their rollout policy.

In: intent, evidence, releases, and how assets are. Out: releases and evidence, in one write that is refused
if anything has changed since. `lehr.rollouts.plan` decides, without I/O; this package reads, writes, wakes.

| module | what |
|---|---|
| `courses` | the course of each policy's rollouts, from the evidence in the store |
| `roster` | the members of a policy, and how they are, from the store |
| `releasing` | the write that carries out a step |
| `forecasts` | forecasts from what the store has recorded |
| `strategist` | the loop |
| `overview` | the same for people: reads, and writes nothing |
"""
