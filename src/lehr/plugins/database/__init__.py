"""`lehr.DatabaseSchema`: tables, columns and indexes of one schema, in PostgreSQL or SQLite.

In: payloads `DatabaseSchema`. Out: a database whose catalogue matches, and a version that others can require,
kept in the database itself.

    payload.py      what people write             connection.py  where a database is
    catalogue.py    a schema as a database has it: values
    plan.py         diff and order of edits: pure
    conversion.py   what changing a column's type takes: pure
    statements.py   edits as SQL: pure
    databases.py    opens and creates databases   session.py     operations on one
    postgres.py     ... of PostgreSQL             sqlite.py      ... of SQLite
    plugin.py       the asset plugin

Architecture invariants: the observed state is read from the catalogue, never remembered; a transaction checks
again before it changes anything, and destroys only what was approved; rows are never read; the driver of a
database is imported when an asset needs it.
"""
