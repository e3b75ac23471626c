"""The command line: data on stdout, messages on stderr.

In: arguments. Out: text, tables, JSON, exit codes.

Architecture invariant: nothing is decided here; commands query, send and format.
"""
