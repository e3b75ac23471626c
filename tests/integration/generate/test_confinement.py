"""What the kernel keeps generators from, by real attempts of native code that Python does not see."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import mmap
import os
import platform
import resource
import signal
import socket
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate.engine.client import GenerationWorker
from lehr.generate.engine.runs import Run
from lehr.generate.engine.schedule import Generator
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox import landlock
from lehr.generate.sandbox.authors import CallOutput, FoundGenerator
from lehr.generate.sandbox.confinement import Confinement, Mechanism, inactive_mechanisms, leave_network
from lehr.generate.sandbox.denials import preload
from lehr.generate.sandbox.forks import RunResult, run
from lehr.generate.sandbox.syscall_table import ABSENT, ARCHITECTURES, CHECKED
from lehr.sdk.generator import Declaration, Reads, SourceFile
from tests.snapshots import MemorySnapshot

LIBC = ctypes.CDLL(None, use_errno=True)
PROBLEMS = inactive_mechanisms()
HERE = ARCHITECTURES.get(platform.machine(), ARCHITECTURES["x86_64"])

needs_seccomp = pytest.mark.skipif(Mechanism.SECCOMP in PROBLEMS, reason=f"no seccomp: {PROBLEMS}")
needs_landlock = pytest.mark.skipif(Mechanism.LANDLOCK in PROBLEMS, reason=f"no Landlock: {PROBLEMS}")
needs_network = pytest.mark.skipif(Mechanism.NETWORK in PROBLEMS, reason=f"no namespaces: {PROBLEMS}")


def confined(attempt: Callable[[], object], by: Collection[Mechanism] = tuple(Mechanism)) -> int:
    """How a process ends that does this under confinement; it ends with what the attempt comes to."""
    confinement = Confinement()
    child = os.fork()
    if child == 0:
        gc.freeze()  # what other tests have left is not finalized here
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        status = 99
        try:
            confinement.apply(by)
            status = int(bool(attempt()))
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_an_attempt_that_is_allowed_is_told_from_one_that_is_not() -> None:
    assert confined(lambda: LIBC.getppid() > 0) == 1
    assert confined(lambda: 0) == 0


@needs_seccomp
def test_what_starts_a_process_ends_this_one() -> None:
    for attempt in (
        lambda: LIBC.fork(),
        lambda: LIBC.vfork(),
        lambda: LIBC.system(b"true"),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
    ):
        assert confined(attempt) == -signal.SIGSYS


@needs_seccomp
def test_what_newer_libraries_try_first_is_not_there() -> None:
    def absent(number: int) -> bool:
        return bool(LIBC.syscall(number, 0, 0, 0) == -1 and ctypes.get_errno() == errno.ENOSYS)

    for number in (*HERE.numbers(ABSENT).values(), HERE.newest + 1):
        assert confined(lambda number=number: absent(number)) == 1, number  # type: ignore[misc]


@needs_seccomp
def test_files_are_opened_for_reading_only(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.write_bytes(b"content")

    def denied(path: Path, flags: int) -> bool:
        return LIBC.open(bytes(path), flags, 0o600) < 0 and ctypes.get_errno() == errno.EACCES

    by = [Mechanism.SECCOMP]
    assert confined(lambda: LIBC.open(bytes(here), os.O_RDONLY) >= 0, by) == 1
    for path, flags in ((here, os.O_RDWR), (here, os.O_TRUNC), (there, os.O_WRONLY | os.O_CREAT)):
        assert confined(lambda path=path, flags=flags: denied(path, flags), by) == 1  # type: ignore[misc]
    assert here.read_bytes() == b"content"
    assert not there.exists()


@needs_seccomp
def test_calls_in_the_32_bit_mode_of_the_processor_end_the_process() -> None:
    if HERE.machine != "x86_64":
        pytest.skip("int 0x80 is of x86-64")
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov eax, 20 (getpid); int 0x80; ret

    def attempt() -> bool:
        memory = mmap.mmap(-1, len(code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        return bool(ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid())

    if confined(attempt, ()) != 1:
        pytest.skip("this kernel has no 32-bit calls")
    assert confined(attempt) == -signal.SIGSYS


@needs_seccomp
def test_libraries_that_generators_use_work() -> None:
    def attempt() -> bool:
        import decimal
        import sqlite3
        import threading
        import zoneinfo

        import jsonschema_rs
        import msgspec

        done: list[object] = []
        thread = threading.Thread(target=lambda: done.append(1))
        thread.start()
        thread.join(10)
        done += sqlite3.connect(":memory:").execute("SELECT count(*) FROM sqlite_master").fetchone()
        done.append(jsonschema_rs.Draft202012Validator({"pattern": "^a+$"}).is_valid("aaa"))
        done.append(msgspec.json.decode(msgspec.json.encode(decimal.Decimal("1.50"))))
        zoneinfo.available_timezones()
        return done == [1, 0, True, "1.50"]

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
    if landlock.version() < 6:
        pytest.skip("this kernel's Landlock does not keep signals back")
    parent = os.getpid()
    assert confined(lambda: LIBC.kill(parent, 0) == 0, [Mechanism.LANDLOCK]) == 0


@needs_landlock
def test_tcp_ports_cannot_be_used() -> None:
    if landlock.version() < 4:
        pytest.skip("this kernel's Landlock does not know of TCP")

    def bind() -> bool:
        with socket.socket() as made:
            made.bind(("127.0.0.1", 0))
        return True

    assert confined(bind, ()) == 1
    assert confined(bind, [Mechanism.LANDLOCK]) == 99


def test_programs_of_another_user_give_no_rights() -> None:
    def renounced() -> bool:
        with open("/proc/self/status") as file:
            return "NoNewPrivs:\t1" in file.read()

    assert confined(renounced, ()) == int(Mechanism.NO_NEW_PRIVILEGES not in PROBLEMS)


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
        monkeypatch.setattr(f"lehr.generate.sandbox.{module}.{name}", refuse)
    monkeypatch.setattr("lehr.generate.sandbox.confinement.unshare", refuse)
    assert set(Confinement().apply()) | set(leave_network()) == set(Mechanism)
    assert set(inactive_mechanisms()) == set(Mechanism)


def ended(work: Callable[[Callable[[bytes], None]], None]) -> tuple[RunResult, list[bytes]]:
    preload()
    frames: list[bytes] = []
    return run(work, SandboxLimits(calls=2), SystemClock(), frames.append), frames


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


def test_the_other_processs_limits_are_its_own() -> None:
    """`prlimit64` on the parent could end it."""
    parent = os.getpid()
    before = resource.getrlimit(resource.RLIMIT_CPU)
    assert confined(lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (1, 1))) != 0
    assert resource.getrlimit(resource.RLIMIT_CPU) == before


GENERATOR = """
from lehr.generate.sandbox.syscalls import syscall
from lehr.sdk.generator import *

@for_each_file("services/*.yaml")
def sneaky(file):
    yield asset("one", "sample.Service", {})
    attempt()

def attempt():
    syscall(%s)
"""

FORBIDDEN = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "lchown": (94, None),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "setxattrat": (463, 463),
    "file_setattr": (469, 469),
    "creat": (85, None),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "mkdirat": (258, 34),
    "mknodat": (259, 33),
    "unlinkat": (263, 35),
    "renameat2": (316, 276),
    "linkat": (265, 37),
    "symlinkat": (266, 36),
    "pwrite64": (18, 68),
    "sendfile": (40, 71),
    "splice": (275, 76),
    "open_by_handle_at": (304, 265),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_tree": (428, 428),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "sendmsg": (46, 211),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "setrlimit": (160, 164),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "setuid": (105, 146),
    "capset": (126, 91),
    "personality": (135, 92),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "swapon": (167, 224),
    "sync": (162, 81),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "syslog": (103, 116),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "semget": (64, 190),
    "shmget": (29, 194),
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "request_key": (249, 218),
    "mlock": (149, 228),
    "timer_create": (222, 107),
    "seccomp": (317, 277),
    "landlock_restrict_self": (446, 446),
}
"""Some calls that change what is not the generator's own, or look into it."""

WITH_ARGUMENTS = {
    "limits of the parent": ("prlimit64", (os.getpid(), 0, 1, 0)),
    "its own limits": ("prlimit64", (0, 0, 1, 0)),
    "a signal to the parent": ("tgkill", (os.getpid(), os.getpid(), 0)),
    "a process": ("clone", (17,)),
    "a thread in a namespace": ("clone", (0x3D0F00 | 0x20000,)),
    "signals by a descriptor": ("fcntl", (1, 8, 1)),
    "input of a terminal": ("ioctl", (1, 0x5412)),
    "death with the parent": ("prctl", (1, 9)),
}

RAW = {
    **{name: (number,) for name, number in HERE.numbers(FORBIDDEN).items()},
    **{name: (HERE.numbers(CHECKED)[call], *rest) for name, (call, rest) in WITH_ARGUMENTS.items()},
    "a call of the x32 mode": (0x40000000 + 39,),
}


@needs_seccomp
@pytest.mark.parametrize("call", RAW.values(), ids=list(RAW))
def test_a_generator_that_makes_a_raw_call_is_ended_and_named_with_its_line(call: tuple[int, ...]) -> None:
    preload()
    path = "generators/g.py"
    found = FoundGenerator("sneaky", Declaration(Reads.FILE, "services/*.yaml"), 6)
    code = {path: (GENERATOR % ", ".join(map(str, call))).encode()}
    answers: list[CallOutput] = []
    problem = Run(SandboxLimits(), SystemClock()).call(
        Generator(path, found, (path,)), [SourceFile("services/a.yaml", b"")], code, answers.append
    )
    assert problem is not None
    assert (problem.code, problem.subject, answers) == ("GEN023", "generators/g.py:sneaky", []), problem
    assert problem.at == Position(path, 11)


@needs_seccomp
def test_what_the_parent_has_left_is_not_finalized_under_confinement(monkeypatch: pytest.MonkeyPatch) -> None:
    class Left:
        """Garbage: it refers to itself, and only a collection ends it."""

        def __init__(self) -> None:
            self.itself = self
            self.of = os.getpid()

        def __del__(self) -> None:
            if os.getpid() != self.of:
                os.sync()  # is not on any list

    apply = Confinement.apply

    def apply_and_collect(self: Confinement) -> object:
        applied = apply(self)
        gc.collect()
        return applied

    monkeypatch.setattr(Confinement, "apply", apply_and_collect)
    gc.disable()
    try:
        Left()
        answers: list[bytes] = []
        result = run(lambda send: send(b"done"), SandboxLimits(), SystemClock(), answers.append)
    finally:
        gc.enable()
    assert (result.status, answers) == (0, [b"done"]), result


STARTS_A_PROCESS = """
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
    [problem] = generated(STARTS_A_PROCESS)
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
        os._exit(0 if inactive_mechanisms().keys() <= PROBLEMS.keys() | {Mechanism.NETWORK} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
