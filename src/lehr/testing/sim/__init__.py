"""Simulation: the whole program in a seeded world where everything goes wrong.

In: a seed, a scenario or a fault plan. Out: what happened (`Trace`), and which invariants of the
architecture were broken, if any. The same seed gives the same run, bit by bit.

| module | what |
|---|---|
| `harness`, `process` | the world, and control planes in it: the real program, over the rest of this table |
| `random_harness`, `script_harness`, `plans.plan_harness` | its drivers: chance, scripts, fault plans |
| `source`, `generation`, `store` | where intent is edited, built and kept, with faults |
| `production`, `holdings`, `faults`, `look_faults` | what is managed, of any asset type, and its faults |
| `simulated_type`, `things`, `plain_values` | its asset types, and the values that it holds |
| `suite`, `profile`, `dice` | random histories from a seed |
| `people`, `intent`, `edits`; `trouble`; `encounters` | actions of people, faults, and encounters |
| `final_phase` | the end of a history, in which everything must settle |
| `script`, `script_play` and related modules | scenarios as text, played and compared |
| `witnessed_state`, `witness` | what was written, and whether it was right: |
| `publication_judge`, `admission_judge`, `rate_limit_judge`, `answer_judge` | one kind of write each |
| `liveness`, `verdict` | what must hold between steps, and at the end: |
| `retry_judge`, `turndown_judge`, `order_judge` | of retries, turndowns and dependencies |
| `remembered_looks`, `wanted_content` | by what looks found, and what assets should be |
| `standstill` | what must hold while nothing happens |
| `coverage` | which lines of the program random histories reach |
| `trace` | what happened: compared, replayed, narrated |

Architecture invariant: nothing here is a model of the program. Everything from the control plane down
to the interfaces of source, store and plugin is the code that runs in production.
"""
