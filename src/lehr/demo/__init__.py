"""The examples of `lehr demo`: real programs, narrated and checked.

In: nothing but this machine. Out: scenes on stdout, each checked by the program; an error with the reason
if one fails.

    hello/         files, processes and a command: eight scenes
    shakespeare/   a service in clusters behind Envoy, with a database, under traffic: twelve scenes
    play.py        plays an example         stage.py   what scenes play on
    plane.py       a `lehr run`             view.py    the table on a terminal

It is part of the wheel, because it must run after `pip install lehr`, without a copy of the repository.

Architecture invariants: the control plane is its own `lehr run`, and changes are commits in a git
repository, as for all users; everything is below one folder, so that concurrent demos do not interfere;
every process is ended by its own pid.
"""
