"""The Enforcer: for every asset independently and continuously: pin, diff, check, admit, push, verify.

In: published incarnations (watched by `intent_follower`), controls, hints from plugins. Out:
operations through plugins, and decisions, ledger entries and standings in the store.

Start reading with `STEPS` in `step`, then `Turns._steps` in `turns`, which calls it. These modules decide,
and are pure:

| module | what it decides |
|---|---|
| `step` | what a turn does next: (state, event) to (state, effects); `state` defines the values |
| `conclude` | how a turn ends, and whether its verdict is recorded as a decision |
| `turndown` | the goal of a turn: how far a removal may go (its content: `lehr.model.pinning`) |
| `contest` | how long to wait where another writer undoes pushes |
| `turn_inputs` | the same decision once more, from what `kept_turn` has of it; `replay` compares the two |

The shell around them has four layers, each of which knows only those below it:

| module | what it does |
|---|---|
| `enforcer` | starts and stops; follows intent (`intent_follower`), the store and hints |
| `in_force` | takes in publications, controls and releases; takes over from a previous process (`recovery`) |
| `turns` | runs one turn: carries out what `step` asks for; `pushes` admits and runs its push |
| `wakeups` | keeps the slots, and wakes them: at a time, for a neighbour (`listeners`), for a free place |

They use `lane` (bounded turns and pushes for each plugin, with `diff_batches` and `time_limit`),
`committer` (grouped commits), `lookups` (reads of the store, off the event loop), `viewer` with `governance`
and `intent_readers` (what a turn sees of intent and controls; `ages` counts time), `neighbours` (what it may
know of other assets), `cycles` (which wait for each other), `turn_checks` (runs the checks) and `claims`.
A slot's `Activity` is what its asset is doing; `TRANSITIONS` in `slot` lists what may follow what.

Architecture invariants: the pure modules import no I/O, clock, randomness or asyncio. No task
exists for an idle asset. A turn decides from intent and production as they are when it runs,
never from the event that woke it.
"""
