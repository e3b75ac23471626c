"""Plugins in processes of their own, in any language, over `lehr.plugin.v1`.

In: programs and addresses that the deployment names. Out: asset plugins. The other direction, for plugins in
Python: in, an asset plugin; out, a program.

    plugin.proto      the protocol, and the promises of both sides
    messages.py       its messages
    wire.py           values of Lehr as messages, and back: pure
    configuration.py  the file in which a deployment names its plugins
    opening.py        starts a program, or connects to an address
    channel.py        calls over gRPC
    connection.py     opens again what was lost or replaced
    intent.py         the intent that a call carries
    asking.py         diffs, one by one or many together
    check_wire.py     pushes, questions and verdicts of checks as messages, and back: pure
    check.py          the check
    validator_wire.py changes and problems of validators as messages, and back: pure
    validator.py      the validator
    plugin.py         the asset plugin
    records.py        what `lehr plugin list` and `logs` show
    given.py          the intent of a call, for a plugin in Python
    given_check.py    the facts of a check, likewise
    given_proposal.py the changes that a validator judges, likewise
    service.py        answers calls by a plugin in Python
    server.py         the program of a plugin in Python

`plugin.binpb` and `messages.pyi` are generated from `plugin.proto` by `scripts/protocols.py`.

Architecture invariants: a push without an outcome is unknown; a plugin is given only secrets that its assets
refer to, and no answer shows them; a call reads whatever its plugin asks for, and nothing that an earlier
call needed; a plugin that was replaced lives until it can change nothing any more.
"""
