"""What must survive: incarnations, operations, the ledger, decisions, controls.

In: values of `lehr.model`, grouped into transactions (`Write`). Out: the same values, read back.

Architecture invariants:

* The only SQL of the program is in this package.
* All writing goes through `Store.commit`: one call, one transaction, whole or not at all. So
  there is one list of all crash points, and one place where writes are grouped.
* Rows of incarnations are only ever appended, and pruned: an incarnation is whole or gone.
* Production's state is not kept here; what is kept is what was decided and done.

| | what |
|---|---|
| `interface`, `writes` | what the rest of the program sees |
| `opening` | which store belongs to a state folder |
| `sqlite`, `postgres` | the stores: connections, tables, errors, incarnations |
| `sql` | what both do alike: admission, records, pruning, checking |
| `merkle`, `origins`, `archive` | digests, provenance, one incarnation as a file; without a database |

The driver of PostgreSQL is only imported where a store is there.
"""

from lehr.store.interface import (
    WHOLE,
    CheckableStore,
    PrunedError,
    Records,
    Row,
    Span,
    Store,
    StoredIntent,
)
from lehr.store.sqlite import SqliteStore

__all__ = [
    "WHOLE",
    "CheckableStore",
    "PrunedError",
    "Records",
    "Row",
    "Span",
    "SqliteStore",
    "Store",
    "StoredIntent",
]
