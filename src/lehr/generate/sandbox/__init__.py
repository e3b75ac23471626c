"""Isolation of user code: forks with limits and denied calls.

`forks` runs a function in a fork, `forker` is the small process that forks; `authors` runs inside. `denials`
makes calls fail with an error that names the line; `confinement` makes the kernel refuse them (`landlock`,
`seccomp`, `syscall_table`, `syscalls`). `meter` measures a fork from outside.
"""
