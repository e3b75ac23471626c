"""`lehr.DatabaseSchema`: tables, columns and indexes of one schema, in PostgreSQL or SQLite.

In: payloads `DatabaseSchema`. Out: a database whose catalogue says the same, and a version that
others can require, kept in the database itself.

    payload.py      what people write             connection.py  where a database is
    catalogue.py    a schema as a database has it: values
    plan.py         diff and order of edits: pure
    conversion.py   what changing a column's type takes: pure
    statements.py   edits as SQL: pure
    databases.py    opens and makes databases     session.py     what is asked of one
    postgres.py     ... of PostgreSQL             sqlite.py      ... of SQLite
    plugin.py       the asset plugin

Architecture invariants: what is there is read from the catalogue, never remembered; a transaction
looks again before it changes anything, and does nothing destructive but what was approved; rows
are never read; the driver of a database is imported when an asset needs it.
"""
