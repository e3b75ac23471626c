"""Code shared by all SQL stores: admission, records, pruning, checking.

In: a `Session` of a database whose tables have the columns that the statements here name, and values of
`lehr.model.writes`. Out: answers, and `Damage`.

Architecture invariants: statements here are of the SQL that SQLite and PostgreSQL both understand; where they
differ, the session provides the syntax. Each database has its own connections, tables, transactions and
errors, and its own code to read and write incarnations, which must be fast.
"""
