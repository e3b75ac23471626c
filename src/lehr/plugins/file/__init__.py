"""The asset types `lehr.File` and `lehr.Symlink`: one file or symbolic link of this machine.

In: payloads `File` and `Symlink`. Out: files and links that are replaced atomically, and hints of drift.

    payload.py   what people write           disk.py        system calls on one file
    compare.py   diff                        watch.py       hints, from the kernel's inotify
    owners.py    users and groups            validation.py  the command that accepts new content
    folders.py   folders of paths            discovery.py   drafts intent from files
    plugin.py    the plugin of files         errors.py      translates the system's errors
    symlinks.py  the plugin of links

Architecture invariants: only regular files and symbolic links are ever replaced or removed, never
directories, devices or pipes; content of files never appears in a diff or a message, except as far as the
command that validates it prints it.
"""
