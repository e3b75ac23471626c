"""What every store that keeps SQL tables does in the same way: admission, records, pruning, checking.

In: a `Session` of a database whose tables have the columns that the statements here name, and values of
`lehr.model.writes`. Out: answers, and `Damage`.

Architecture invariants: statements here are of the SQL that SQLite and PostgreSQL both understand; in
what they differ, the session says how it is said there. Connecting, tables, transactions and errors are
the database's own; so is reading and writing incarnations, which is what has to be fast.
"""
