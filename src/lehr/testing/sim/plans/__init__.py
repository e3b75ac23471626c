"""Fault plans: a run without faults, and then the same run with one fault at each point in turn.

In: a `Scenario`. Out: for each plan, the alarms: differences from the run without the fault.

After Sieve (OSDI 2022), which found 46 bugs in ten Kubernetes controllers this way. Random histories
(`lehr.testing.sim.suite`) try deep combinations and may miss a particular place; plans try every
place, one fault at a time, and name it exactly.

A scenario is a deterministic course of commits, commands and drift; each settles before the next
begins. The *reference* is the scenario played once without any fault. It passes *points*: every
commit of the store, every look at production, every begin of a push, every write of production, every
event that wakes (a notification of the source, a publication, a command, a hint), every read of the
source; each with a digest of the state around it. A *plan* is one fault at one point:

| at | faults |
|---|---|
| a commit | crash before, crash after; another control plane starts, or does so while the first is held |
| a commit | the scenario's next step comes immediately, in the middle of this one |
| an admission | reads of the store are stale; further back before what removes or destroys |
| a look before what removes or destroys | fails; finds what was there before |
| a push | fails, applied but failed, applied in part, answer lost, hangs, runs on; held |
| a write | crash before, crash after; the write shows late; held |
| an event | lost; doubled, the second time late |
| a read | unreadable; truncated, blank, repeated files; half of the source; all but its first file gone |

Every run has the same seed, so up to its point it *is* the reference. Then the fault passes, and a
person does what a condition's `unblock` asks for, where the reference went further. Two oracles:

* The state after each step is that of the reference: production, ledger, status and reason of every
  asset, digest of the newest incarnation, nothing left open.
* Production of every asset went through the same values. So it was created, updated and removed
  equally often. Changes that the fault itself left half done do not count, nor do repeated pushes.
  Where the next step came early, values of the reference may be left out, and no others come in.

And the `Witness` judges every write and push on the way.

A plan that cannot change what happens is pruned (`needless_plans`): each rule is a function with its reason,
and a test plays pruned plans to see that they are right.

| module | what |
|---|---|
| `scenario` | scenarios, and how to write one; two are in `lehr.testing.sim.examples` |
| `plan` | points, faults, plans, the reference: values |
| `plan_list`, `needless_plans`, `damage` | which plans there are, which are played, damage to sources |
| `oracles` | what must be equal |
| `saboteur` | waits at every point of a run, counts it, and strikes |
| `scenario_witness` | judges each write, and keeps the state that is compared |
| `plan_harness`, `campaign` | one run; all of them, over all processors |

Architecture invariants: a plan changes nothing before its point; the program under test knows nothing
of plans; the compared states hold no identifiers and no times.
"""
