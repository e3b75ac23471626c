"""The asset types `lehr.File`, `lehr.Symlink` and `lehr.Directory`: entries of this machine's file systems.

In: payloads `File`, `Symlink` and `Directory`. Out: files and links that are replaced atomically, directories
with their mode and owner, and hints of drift.

    payload.py   what people write           disk.py        system calls on one file
    compare.py   diff                        watch.py       hints, from the kernel's inotify
    owners.py    users and groups            validation.py  the command that accepts new content
    folders.py   folders of paths            discovery.py   drafts intent from files
    plugin.py    the plugin of files         errors.py      translates the system's errors
    symlinks.py  the plugin of links         directories.py  the plugin of directories
    entries.py   what these two share        undeclared.py   what exclusive directories must not have
    texts.py     content, for plans

Architecture invariants: only regular files, symbolic links and empty directories are ever replaced or
removed, never devices or pipes; content of files never appears in a diff or a message, except as far as the
command that validates it prints it. A plan shows texts, which are never stored.
"""
