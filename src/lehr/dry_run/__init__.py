"""Dry runs: the decisions of other packages, applied to intent that is not published.

In: a generated workspace, the store, plugins and checks. Out: frozen values, for the CLI to show.

Architecture invariants:

* Nothing is written, and no plugin is asked to push.
* This package never decides what a run decides: a plan consists of the turns of `lehr.enforce`, whose last
  effect, the push, is only reported.

| | what |
|---|---|
| `candidate` | the incarnation that publishing a workspace would create |
| `supposed` | admission of simulated pushes, one after the other |
| `planner` | the turns of all assets, up to their pushes |
| `planned` | the planned result of an asset |
| `promotion` | which incarnation of another partition a source would be pinned to |
| `intent_changes` | the changes of intent behind a push |
| `texts`, `revealed` | the texts that pushes would change, without secrets |
| `drafts` | which drafts of existing production can be adopted unchanged |
| `examples`, `example_effects` | the examples of policies, and their results |
"""
