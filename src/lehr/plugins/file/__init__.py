"""The asset type `lehr.File`: one file of this machine, with content, mode and owner.

In: payloads (`payload`). Out: files that are replaced whole or not at all (`plugin`, over the
system calls of `replace`), hints of drift (`watch`), and diagnostics (`validators`).

Architecture invariants: only regular files and symbolic links are ever replaced or removed,
never directories, devices or pipes; content of files never appears in a diff or a message.
"""
