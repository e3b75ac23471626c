"""What the kernel keeps generators from, by real attempts of native code that Python does not see."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate import confinement
from lehr.generate.client import GenerationWorker
from lehr.generate.confinement import Confinement, Mechanism, held_back, leave_network
from lehr.generate.denials import preload
from lehr.generate.protocol import SandboxLimits
from lehr.generate.sandbox import Ended, run
from lehr.testing.samples import MemorySnapshot

LIBC = ctypes.CDLL(None, use_errno=True)
PROBLEMS = held_back()

needs_seccomp = pytest.mark.skipif(Mechanism.SECCOMP in PROBLEMS, reason=f"no seccomp: {PROBLEMS}")
needs_landlock = pytest.mark.skipif(Mechanism.LANDLOCK in PROBLEMS, reason=f"no Landlock: {PROBLEMS}")
needs_network = pytest.mark.skipif(Mechanism.NETWORK in PROBLEMS, reason=f"no namespaces: {PROBLEMS}")


def confined(attempt: Callable[[], object]) -> int:
    """How a process ends that does this under confinement; it ends with what the attempt comes to."""
    confinement = Confinement()
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        status = 99
        try:
            confinement.apply()
            status = int(bool(attempt()))
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_an_attempt_that_is_allowed_is_told_from_one_that_is_not() -> None:
    assert confined(lambda: LIBC.getppid() > 0) == 1
    assert confined(lambda: 0) == 0


@needs_seccomp
@pytest.mark.parametrize(
    "attempt",
    [
        lambda: LIBC.socket(2, 1, 0),
        lambda: LIBC.socket(1, 1, 0),
        lambda: LIBC.fork(),
        lambda: LIBC.vfork(),
        lambda: LIBC.execl(b"/bin/true", b"true", None),
        lambda: LIBC.ptrace(0, 0, 0, 0),
        lambda: LIBC.unshare(0x10000000),
        lambda: LIBC.system(b"true"),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
    ],
)
def test_processes_and_sockets_end_the_process(attempt: Callable[[], object]) -> None:
    assert confined(attempt) == -signal.SIGSYS


@needs_seccomp
def test_threads_of_native_code_are_let_through() -> None:
    import threading

    def attempt() -> bool:
        done: list[int] = []
        thread = threading.Thread(target=lambda: done.append(1))
        thread.start()
        thread.join()
        return done == [1]

    assert confined(attempt) == 1


@needs_landlock
@pytest.mark.parametrize("path", [b"/etc/passwd", b"/proc/self/environ", b"/", b"/dev/urandom"])
def test_files_cannot_be_read(path: bytes) -> None:
    assert LIBC.open(path, os.O_RDONLY) >= 0
    assert confined(lambda: LIBC.open(path, os.O_RDONLY) < 0 and ctypes.get_errno() == 13) == 1


@needs_landlock
def test_files_cannot_be_written_where_they_can_be_read(tmp_path: object) -> None:
    place = os.path.dirname(os.__file__).encode()
    assert confined(lambda: LIBC.open(place + b"/os.py", os.O_RDONLY) >= 0) == 1
    assert confined(lambda: LIBC.open(place + b"/os.py", os.O_WRONLY) >= 0) == 0
    assert confined(lambda: LIBC.open(place + b"/new", os.O_WRONLY | os.O_CREAT, 0o600) >= 0) == 0


@needs_landlock
def test_other_processes_cannot_be_ended() -> None:
    if confinement.landlock_version() < 6:
        pytest.skip("this kernel's Landlock does not keep signals back")
    parent = os.getpid()
    assert confined(lambda: LIBC.kill(parent, 0) == 0) == 0


@needs_network
def test_there_is_no_network() -> None:
    outside = os.readlink("/proc/self/ns/net")
    child = os.fork()
    if child == 0:
        leave_network()
        with open("/proc/net/dev") as file:
            only_loopback = [line.split(":")[0].strip() for line in file.readlines()[2:]] == ["lo"]
        os._exit(0 if only_loopback and os.readlink("/proc/self/ns/net") != outside else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_machine_where_nothing_of_it_is_to_be_had_runs_generators_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError(1, "Operation not permitted")

    for module, name in (("landlock", "syscall"), ("seccomp", "prctl"), ("confinement", "prctl")):
        monkeypatch.setattr(f"lehr.generate.{module}.{name}", refuse)
    monkeypatch.setattr("lehr.generate.confinement.unshare", refuse)
    assert set(Confinement().apply()) | set(leave_network()) == set(Mechanism)
    assert set(held_back()) == set(Mechanism)


def ended(work: Callable[[Callable[[bytes], None]], None]) -> tuple[Ended, list[bytes]]:
    preload()
    frames: list[bytes] = []
    return run(work, SandboxLimits(), SystemClock(), frames.append), frames


def test_modules_of_python_that_load_libraries_of_the_system_can_be_imported() -> None:
    def work(send: Callable[[bytes], None]) -> None:
        import bz2
        import decimal
        import hashlib
        import lzma
        import ssl

        send(lzma.compress(bz2.compress(hashlib.sha256(str(decimal.Decimal(1)).encode()).digest()))[:1])
        send(ssl.OPENSSL_VERSION.encode()[:1])

    outcome, frames = ended(work)
    assert (outcome.status, len(frames)) == (0, 2), outcome.printed


GENERATOR = """
import _posixsubprocess  # which Python does not report
from lehr.sdk.generator import *

@for_each_file("services/*.yaml")
def sneaky(file):
    yield asset("one", "sample.Service", {})
    attempt()

def attempt():
    pipes, others = (-1, -1, -1, -1, -1, -1, 0, 3), (False, False, -1, None, None, None, -1, None, False)
    _posixsubprocess.fork_exec([b"true"], [b"/bin/true"], True, (), None, None, *pipes, *others)
"""


@needs_seccomp
def test_a_generator_whose_native_code_starts_a_process_is_named_with_its_line() -> None:
    [problem] = generated(GENERATOR)
    assert (problem.code, problem.subject) == ("GEN023", "generators/g.py:sneaky")
    assert problem.at == Position("generators/g.py", 12)
    assert "native code" in problem.why


def generated(code: str) -> tuple[Diagnostic, ...]:
    async def main() -> tuple[Diagnostic, ...]:
        worker = GenerationWorker("lehr.testing.samples:registry", Inline())
        files: dict[str, str | bytes] = {
            "lehr.yaml": "partition: test\n",
            "generators/g.py": code,
            "services/a.yaml": "a",
        }
        try:
            return (await worker.generate(MemorySnapshot(files))).diagnostics
        finally:
            await worker.close()

    return asyncio.run(main())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_is_confined_as_well() -> None:
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        os._exit(0 if held_back().keys() <= PROBLEMS.keys() | {Mechanism.NETWORK} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
