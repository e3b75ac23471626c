"""Simulation: the whole program in a seeded world where everything goes wrong.

In: a seed, a scenario or a fault plan. Out: what happened (`Trace`), and which invariants of the
architecture were broken, if any. The same seed gives the same run, bit by bit.

| module | what |
|---|---|
| `process` | control planes: the real program, over what follows |
| `source`, `generation`, `store` | where intent is edited, built and kept, with faults |
| `production`, `faults`, `things` | what is managed, of any asset type, and all that goes wrong with it |
| `history`, `scene`, `manners`, `dice` | random histories from a seed |
| `people`, `intent`, `edits`; `trouble`; `encounters` | what people do in them, what goes wrong, what meets |
| `quiet` | the end of a history, in which all must come to rest |
| `script`, `script_play` and beside them | scenarios as text, played and compared |
| `witness`, `conduct`, `verdict` | what must hold at every step, between steps, and at the end |
| `lull`, `standstill` | what must hold while nothing happens |
| `coverage` | which lines of the program random histories reach |
| `trace` | what happened: compared, replayed, told |

Architecture invariant: nothing here is a model of the program. Everything from the control plane down
to the interfaces of source, store and plugin is the code that runs in production.
"""
