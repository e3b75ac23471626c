"""The asset type `lehr.File`: one file of this machine, with content, mode and owner.

In: payloads `File`. Out: files that are replaced atomically, and hints of drift.

    payload.py   what people write           disk.py     system calls on one file
    compare.py   diff                        watch.py    hints, from the kernel's inotify
    owners.py    users and groups            validation.py   the command that accepts new content
    plugin.py    the asset plugin            discovery.py    drafts intent from files

Architecture invariants: only regular files and symbolic links are ever replaced or removed,
never directories, devices or pipes; content of files never appears in a diff or a message.
"""
