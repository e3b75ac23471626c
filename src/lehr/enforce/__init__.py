"""The Enforcer: for every asset on its own, for ever: pin, diff, check, admit, push, verify.

In: published incarnations (watched by `following`), controls, hints from plugins. Out:
operations through plugins, and decisions, ledger entries and standings in the store.

How it is cut: `step` is the per-asset state machine, a pure function from (state, event) to
(state, effects); `pinning` and `turndown` decide, as pure functions, which content and which goal
a turn has. Everything else here is the shell that carries effects out: `lane` (bounded turns and
pushes per plugin), `committer` (grouped commits), `reading` (incarnation-bound readers), `enforcer`
(the wiring of these). Whose turn it is, and what is due when, is kept as controllers keep it
(`lehr.client.turns`, `lehr.client.agenda`).

Architecture invariants: the pure modules import no I/O, clock, randomness or asyncio. No task
exists for an idle asset. A turn decides from intent and production as they are when it runs,
never from the event that woke it.
"""
