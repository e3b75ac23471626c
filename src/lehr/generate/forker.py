"""A process that forks in the worker's stead, because it stays small.

A fork copies the page tables of whoever forks, and its end takes them down again: of a worker that
remembers a million assets that takes as long as all the rest of a small change. This process is forked off
before the worker knows anything. What it forks knows nothing but what the call is given.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
from typing import NoReturn

from lehr.base.clock import Clock
from lehr.generate.confinement import Confinement, leave_network
from lehr.generate.protocol import SandboxLimits
from lehr.generate.sandbox import Ended, Take, Work, be_forked, supervise

_BYTES = 8
"""Of a number: a length, a process id, a status."""

_REAP = b"."


class Forker:
    """Starts the process. To be made in a process with a single thread, before it grows.

    Architecture invariant: pickles go from the worker to the forker only. What the forks answer is decoded
    as data by whoever reads it.
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = os.fork()
        if self._process == 0:
            _serve(theirs)
        theirs.close()

    def run(self, work: Work, limits: SandboxLimits, clock: Clock, take: Take) -> Ended:
        """As `lehr.generate.sandbox.run`. All that `work` holds is sent.

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

        return supervise(start, reap, limits, clock, take)

    def close(self) -> None:
        """End the process, and wait for its end."""
        self._socket.close()
        os.waitpid(self._process, 0)


def _serve(worker: socket.socket) -> NoReturn:
    """The life of the forker: until the worker is gone."""
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
    _exactly(worker, len(_REAP))  # until then, nobody else can get its process id
    _, status = os.waitpid(child, 0)
    worker.sendall(_number(status))


def _keep_only(descriptor: int) -> None:
    """Let go of the pipes to the parent: it is told of the worker's end by their closing."""
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
