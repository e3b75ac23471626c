"""Durable state: incarnations, operations, the ledger, decisions, controls.

In: values of `lehr.model`, grouped into transactions (`lehr.model.writes`). Out: the same values, read back
by the protocols of `lehr.sdk.store`, the only part that the rest of the program sees.

Architecture invariants:

* The only SQL of the program is in this package.
* All writing goes through `Store.commit`: one call, one atomic transaction. So there is one list of all crash
  points, and one place where writes are grouped.
* Rows of incarnations are only ever appended, and pruned: an incarnation is whole or gone.
* The store does not keep production's state, only decisions and actions.

| | what |
|---|---|
| `locations` | which store belongs to a state folder |
| `sqlite`, `postgres` | the stores: connections, tables, errors, incarnations |
| `sql` | shared by both: admission, records, pruning, checking |
| `archive` | one incarnation as a file, without a database |
| `claims`, `registers` | claims of paths and ports on this host |

The PostgreSQL driver is imported only if the store is there.
"""
