"""What must survive: incarnations, operations, the ledger, decisions, controls.

In: values of `lehr.model`, grouped into transactions (`lehr.model.writes`). Out: the same values, read back
by the protocols of `lehr.sdk.store`, which are all that the rest of the program sees.

Architecture invariants:

* The only SQL of the program is in this package.
* All writing goes through `Store.commit`: one call, one transaction, whole or not at all. So
  there is one list of all crash points, and one place where writes are grouped.
* Rows of incarnations are only ever appended, and pruned: an incarnation is whole or gone.
* Production's state is not kept here; what is kept is what was decided and done.

| | what |
|---|---|
| `opening` | which store belongs to a state folder |
| `sqlite`, `postgres` | the stores: connections, tables, errors, incarnations |
| `sql` | what both do alike: admission, records, pruning, checking |
| `archive` | one incarnation as a file; without a database |
| `claims`, `registers` | who on this host may claim a path or a port |

The driver of PostgreSQL is only imported where a store is there.
"""
