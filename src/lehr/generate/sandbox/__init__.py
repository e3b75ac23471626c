"""User code, kept apart: forks with limits, and what they are denied.

`forks` runs a function in a fork, `forker` is the small process that forks; `authors` is what runs inside.
`denials` makes calls fail with an error that names the line; `confinement` has the kernel refuse them
(`landlock`, `seccomp`, `syscall_table`, `syscalls`). `meter` measures a fork from outside.
"""
