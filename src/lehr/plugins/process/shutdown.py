"""Ends everything that runs below one state folder, for an operator. Blocks briefly."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

from lehr.plugins.process import procfs
from lehr.plugins.process.ownership import Ownership


def running(root: Path) -> Counter[str]:
    """How many replicas run, by `partition:id` of their asset.

    Args:
        root: `<state>/supervisor`, absolute.
    """
    replicas = {marks[procfs.REPLICA] for _process, marks in Ownership(root).marked()}
    return Counter(sorted(replica.rpartition("#")[0] for replica in replicas))


class Shutdown:
    """The end of all supervisords, and with them of their programs, each within its own `stop_timeout`.

    Use: call `step` until it returns nothing. The definitions of the programs stay.

    Args:
        root: `<state>/supervisor`, absolute.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._asked: set[procfs.ProcessId] = set()

    def step(self) -> list[procfs.ProcessId]:
        """Ask what has not been asked yet to end, and return what still runs.

        Programs are asked by their supervisord; those that have none any more are asked directly.

        Raises:
            StalledError: a process belongs to another user.
        """
        supervisords = [
            process for process, environment in procfs.marked(self._root) if procfs.REPLICA not in environment
        ]
        left = supervisords or [process for process, _marks in Ownership(self._root).marked()]
        for process in left:
            if process not in self._asked:
                procfs.send(process, signal.SIGTERM)
                self._asked.add(process)
        return left
