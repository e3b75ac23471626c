"""What would be, were something done: the decisions of other packages, over what nobody has published.

In: a workspace as it is generated, the store, plugins and checks. Out: frozen values, for whoever shows them.

Architecture invariants:

* Nothing is written, and no plugin is asked to push.
* Nothing is decided here that a run decides: a plan is made of the turns of `lehr.enforce`, whose last
  effect, the push, is only told.

| | what |
|---|---|
| `candidate` | the incarnation that a workspace would become |
| `supposed` | what admission answers to one push after the other |
| `planner` | the turns of all assets, up to their pushes |
| `drafts` | which drafts of what production has can be adopted as they are |
| `examples`, `example_effects` | what policies make of their examples |
"""
