"""The Enforcer: for every asset on its own, for ever: pin, diff, check, admit, push, verify.

In: published incarnations (watched by `following`), controls, hints from plugins. Out:
operations through plugins, and decisions, ledger entries and standings in the store.

`step` is the per-asset state machine, a pure function from (state, event) to (state, effects);
`pinning` and `turndown` decide, as pure functions, which content and which goal a turn has. The
shell around them has three rooms, each of which knows only those below it:

| module | what |
|---|---|
| `enforcer` | life: starts and stops, follows intent and controls |
| `turns` | runs one turn: carries out what `step` asks for |
| `wakeups` | the slots, and what wakes them: time, neighbours, free places |

They use `lane` (bounded turns and pushes per plugin), `committer` (grouped commits), `viewing` and
`reading` (what a turn sees of intent) and `neighbours` (what it may know of other assets). A slot's
`Activity` says what its asset is doing; `TRANSITIONS` in `slot` lists what may follow what.

Architecture invariants: the pure modules import no I/O, clock, randomness or asyncio. No task
exists for an idle asset. A turn decides from intent and production as they are when it runs,
never from the event that woke it.
"""
