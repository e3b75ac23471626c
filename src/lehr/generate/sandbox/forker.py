"""A process that forks on behalf of the worker, because it stays small.

A fork copies the page tables of its parent and frees them when it ends: for a worker with a million assets
that takes as long as the rest of a small change. This process is forked before the worker holds any data. Its
forks know only the arguments of the call.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import NoReturn

from lehr.base.clock import Clock
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox.confinement import Confinement, leave_network
from lehr.generate.sandbox.denials import preload
from lehr.generate.sandbox.forks import RunResult, Take, Work, be_forked, supervise

_BYTES = 8
"""Size of a number: a length, a process id, a status."""

_REAP = b"."
_READY = b"!"


class Remote:
    """Runs work in forks of the process at the other end of a socket.

    Architecture invariant: pickles go from the worker to the forker only. The answers of forks are decoded as
    data by their reader.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def run(
        self, work: Work, limits: SandboxLimits, clock: Clock, take: Take, interrupt: int | None = None
    ) -> RunResult:
        """As `lehr.generate.sandbox.forks.run`. Everything that `work` holds is sent.

        Args:
            interrupt: descriptor; the fork is killed as soon as it is readable.

        Raises:
            EOFError, OSError: the forker has died.
        """
        request = pickle.dumps((work, limits))

        def start(send_to: int, print_to: int) -> int:
            socket.send_fds(self._socket, [_number(len(request))], [send_to, print_to])
            self._socket.sendall(request)
            return _received(self._socket)

        def reap(_child: int) -> int:
            self._socket.sendall(_REAP)
            return _received(self._socket)

        return supervise(start, reap, limits, clock, take, interrupt)


class Forker(Remote):
    """A fork of this process. Create it in a single-threaded process, before that grows."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._process = os.fork()
        if self._process == 0:
            _serve(theirs)
        theirs.close()
        super().__init__(ours)

    def close(self) -> None:
        """End the process, and wait until it exits."""
        self._socket.close()
        os.waitpid(self._process, 0)


class OtherForker(Remote):
    """Another interpreter, with a different `environment`. It takes a while to start."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-s", "-P", "-m", "lehr.generate.sandbox.forker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **environment},
                pass_fds=[theirs.fileno()],
            )
        self._started = False
        super().__init__(ours)

    def ready(self) -> bool:
        """Whether it has started, and has not ended."""
        if not self._started and select.select([self._socket], [], [], 0)[0]:
            self._started = self._socket.recv(len(_READY)) == _READY
        return self._started and self._process.poll() is None

    def close(self) -> None:
        """End the process, and wait until it exits."""
        self._socket.close()
        self._process.kill()
        self._process.wait()


def _serve(worker: socket.socket) -> NoReturn:
    """Run the forker until the worker is gone."""
    with contextlib.suppress(EOFError, OSError):
        _keep_only(worker.fileno())
        leave_network()
        confinement = Confinement()
        while True:
            _fork_one(worker, confinement)
    os._exit(0)


def _fork_one(worker: socket.socket, confinement: Confinement) -> None:
    length, descriptors, _flags, _address = socket.recv_fds(worker, _BYTES, 2)
    if len(length) < _BYTES:
        raise EOFError
    work, limits = pickle.loads(_exactly(worker, int.from_bytes(length, "big")))  # noqa: S301  the worker's own
    child = os.fork()
    if child == 0:
        send_to, print_to = descriptors
        be_forked(work, limits, send_to, print_to, confinement)
    del work
    for descriptor in descriptors:
        os.close(descriptor)
    worker.sendall(_number(child))
    _exactly(worker, len(_REAP))  # until then, its process id cannot be reused
    _, status = os.waitpid(child, 0)
    worker.sendall(_number(status))


def _keep_only(descriptor: int) -> None:
    """Close the pipes to the parent, which detects the worker's end by their closing."""
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, 1 << 16)


def _number(value: int) -> bytes:
    return value.to_bytes(_BYTES, "big")


def _received(connection: socket.socket) -> int:
    return int.from_bytes(_exactly(connection, _BYTES), "big")


def _exactly(connection: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        chunk = connection.recv(min(size - len(content), 1 << 20))
        if not chunk:
            raise EOFError("the other end is gone")
        content += chunk
    return bytes(content)


def main() -> None:
    """Run as the process of an `OtherForker`; the argument is the descriptor of its socket."""
    preload()
    worker = socket.socket(fileno=int(sys.argv[1]))
    worker.sendall(_READY)
    _serve(worker)


if __name__ == "__main__":
    main()
