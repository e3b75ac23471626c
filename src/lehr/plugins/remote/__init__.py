"""Plugins in processes of their own, in any language, over `lehr.plugin.v1`.

    plugin.proto   the protocol, and the promises of both sides
    messages.py    its messages

`plugin.binpb` and `messages.pyi` are generated from `plugin.proto` by `scripts/protocols.py`.
"""
