"""Terraform's plugin protocol, versions 5 and 6: `lehr.plugins.terraform.provider` over gRPC.

In: a provider's program and its configuration. Out: a `Provider`. Needs the extra `lehr[terraform]`.

    provider.proto, provider.binpb, messages.py   messages: scripts/protocols.py generates them
    calls.py         methods of both versions, and messages as values
    schema_codec.py  schemas
    connection.py    calls a process, and reads what it logs
    client.py        `WireProvider`, one running process
    starting.py      `Providers` starts it: process, connection, schemas

Architecture invariants: a call without a readable answer is `ProviderGoneError`, never a guess; an apply is
not cancelled, and its process is not ended before it; all output of a provider is read, and little is kept.
"""
