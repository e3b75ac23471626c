"""Plugin programs, started for real."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.plugins.handshake import Handshake
from lehr.plugins.plugin_process import PluginProcess, PluginProcesses, Program
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden, SecretValue

HANDSHAKE = Handshake("COOKIE", "biscuit", (1, 3))
GREETS = 'print("1|3|unix|" + os.environ["PLUGIN_UNIX_SOCKET_DIR"] + "/socket|grpc", flush=True)\n'
WAITS = "sys.stdin.read()\n"


class Started:
    """Starts Python programs as plugins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.printed = asyncio.Event()

    def program(self, body: str) -> Path:
        path = self.folder / "plugin"
        path.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n{body}")
        path.chmod(0o755)
        return path

    async def start(
        self, body: str, *, seconds: float = 20.0, sha256: str = "", hidden: Hidden = NOTHING_HIDDEN
    ) -> PluginProcess:
        program = Program((str(self.program(body)), "argument"), {"MINE": "hunter22"}, "/", sha256)
        processes = PluginProcesses(Inline(), SystemClock())
        return await processes.start(program, HANDSHAKE, seconds=seconds, log=self.log, hidden=hidden)

    def log(self, line: str) -> None:
        self.lines.append(line)
        self.printed.set()

    def fails(self, body: str, *, seconds: float = 20.0, sha256: str = "") -> LehrError:
        with pytest.raises(LehrError) as caught:
            asyncio.run(self.start(body, seconds=seconds, sha256=sha256))
        return caught.value


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    monkeypatch.setenv("OURS", "not for plugins")
    return Started(tmp_path)


def test_a_plugin_is_greeted_and_ends_when_its_host_lets_go(started: Started) -> None:
    async def scenario() -> None:
        plugin = await started.start(GREETS + WAITS + 'print("bye", file=sys.stderr)')
        path = Path(plugin.address.removeprefix("unix:"))
        assert (plugin.version, path.name, plugin.running) == (3, "socket", True)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        await plugin.stop(grace=20.0)
        assert not plugin.running
        assert not path.parent.exists()

    asyncio.run(scenario())


def test_its_environment_is_small(started: Started) -> None:
    async def scenario() -> None:
        plugin = await started.start(
            "print(sorted(os.environ), sys.argv[1:], os.getcwd(), file=sys.stderr)\n" + GREETS + WAITS
        )
        await plugin.stop(grace=20.0)

    asyncio.run(scenario())
    assert started.lines[0] == (
        "['COOKIE', 'HOME', 'LANG', 'MINE', 'PATH', 'PLUGIN_PROTOCOL_VERSIONS', 'PLUGIN_UNIX_SOCKET_DIR', "
        "'TMPDIR'] ['argument'] /"
    )


def test_secrets_are_hidden_in_what_it_prints(started: Started) -> None:
    async def scenario() -> str:
        plugin = await started.start(
            GREETS + 'print("my password:", os.environ["MINE"], file=sys.stderr); sys.exit(3)',
            hidden=Hidden([SecretValue(b"hunter22")]),
        )
        how = await plugin.ended()
        await plugin.stop()
        return how

    assert asyncio.run(scenario()) == "exit code 3: my password: [secret]"
    assert started.lines == ["my password: [secret]"]


def test_output_without_end_and_lines_without_end_are_read(started: Started) -> None:
    async def scenario() -> str:
        plugin = await started.start(
            GREETS + 'sys.stdout.write("x" * 3_000_000); sys.stdout.flush()\n'
            'for i in range(20_000): print("line", i, file=sys.stderr)\n'
            "os.kill(os.getpid(), signal.SIGTERM)"
        )
        how = await plugin.ended()
        await plugin.stop()
        return how

    how = asyncio.run(scenario())
    assert how.startswith("killed by signal 15 (Terminated)")
    assert max(map(len, started.lines)) <= 8192


def test_one_that_ignores_the_farewell_is_killed_with_its_children(started: Started) -> None:
    body = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child: print(child, file=sys.stderr, flush=True)\n"
        "if child: " + GREETS + "time.sleep(600)"
    )

    async def scenario() -> None:
        plugin = await started.start(body)
        await started.printed.wait()
        await plugin.stop(grace=0.1)
        assert not plugin.running

    asyncio.run(scenario())
    assert _ends(int(started.lines[0]))


def test_nothing_is_signalled_once_it_has_ended(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> list[int]:
        plugin = await started.start(GREETS + "sys.exit(3)")
        await plugin.ended()
        await asyncio.sleep(0.05)
        signalled: list[int] = []
        monkeypatch.setattr(os, "killpg", lambda group, number: signalled.append(group))
        await plugin.stop(grace=1.0)
        assert not Path(plugin.address.removeprefix("unix:")).parent.exists()
        return signalled

    assert asyncio.run(scenario()) == [], "another process may have its id by then"


def test_it_does_not_outlive_its_host(started: Started, tmp_path: Path) -> None:
    program = started.program(GREETS + "print(os.getpid(), file=sys.stderr, flush=True)\ntime.sleep(600)")
    host = f"""
import asyncio, os, sys
from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.plugins.handshake import Handshake
from lehr.plugins.plugin_process import PluginProcesses, Program
async def main():
    started = PluginProcesses(Inline(), SystemClock()).start(
        Program(({str(program)!r},)), Handshake("COOKIE", "biscuit", (3,)), seconds=20.0,
        log=lambda line: print(line, flush=True))
    await started
    await asyncio.sleep(600)
asyncio.run(main())
"""

    async def scenario() -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", host, stdout=asyncio.subprocess.PIPE, env=os.environ
        )
        assert process.stdout is not None
        pid = int(await process.stdout.readline())
        process.kill()
        await process.wait()
        return pid

    assert _ends(asyncio.run(scenario()))


@pytest.mark.parametrize(
    ("body", "code", "kind", "said"),
    [
        ('sys.exit("no database")', "PLG101", TransientError, "exit code 1: no database"),
        ("os.close(1); time.sleep(600)", "PLG101", TransientError, "it has closed its standard output"),
        (
            'print("usage: plugin [options]")',
            "PLG107",
            StalledError,
            "it has printed: usage: plugin [options]",
        ),
        ('print("1|x|unix|/a|grpc")', "PLG107", StalledError, "1|x|unix|/a|grpc"),
        ('print("1|3|unix|/a|netrpc")', "PLG107", StalledError, "1|3|unix|/a|netrpc"),
        ('print("1|2|unix|/a|grpc")', "PLG108", StalledError, "Lehr speaks 1 and 3"),
        ('print("1|3|unix|/tmp/a|grpc")', "PLG109", StalledError, "it listens at unix /tmp/a"),
        ('print("1|3|tcp|127.0.0.1:1234|grpc")', "PLG109", StalledError, "it listens at tcp 127.0.0.1:1234"),
        ('sys.stdout.buffer.write(b"\\xff\\x00" * 50_000)', "PLG107", StalledError, "it has printed"),
    ],
)
def test_what_does_not_greet_is_named(
    started: Started, body: str, code: str, kind: type[LehrError], said: str
) -> None:
    error = started.fails(body)
    assert (error.code, type(error)) == (code, kind)
    assert said in error.why
    assert len(error.why) < 400


def test_one_that_never_answers_is_given_up(started: Started) -> None:
    error = started.fails(
        'print("waiting for the licence", file=sys.stderr, flush=True); time.sleep(600)', seconds=1.0
    )
    assert (error.code, error.why) == ("PLG102", "waiting for the licence")


def test_only_the_pinned_program_is_started(started: Started) -> None:
    digest = hashlib.sha256(started.program(GREETS + WAITS).read_bytes()).hexdigest()

    async def scenario() -> None:
        plugin = await started.start(GREETS + WAITS, sha256=digest.upper())
        await plugin.stop(grace=20.0)

    asyncio.run(scenario())
    error = started.fails('open("/tmp/owned", "w")\n' + GREETS, sha256=digest)
    assert error.code == "PLG106"
    assert digest in error.why


@pytest.mark.parametrize(
    ("prepare", "code"),
    [
        (lambda path: path.unlink(), "PLG103"),
        (lambda path: path.chmod(0o644), "PLG104"),
    ],
)
def test_a_program_that_cannot_run_is_named(
    tmp_path: Path, started: Started, prepare: Callable[[Path], None], code: str
) -> None:
    path = started.program("")
    prepare(path)
    processes = PluginProcesses(Inline(), SystemClock())
    with pytest.raises(StalledError) as caught:
        asyncio.run(processes.start(Program((str(path),)), HANDSHAKE, seconds=5.0, log=started.lines.append))
    assert caught.value.code == code


def test_a_program_whose_interpreter_is_missing_is_named(started: Started, tmp_path: Path) -> None:
    path = tmp_path / "plugin"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    processes = PluginProcesses(Inline(), SystemClock())
    with pytest.raises(TransientError, match="before the handshake") as caught:
        asyncio.run(processes.start(Program((str(path),)), HANDSHAKE, seconds=20.0, log=started.lines.append))
    assert caught.value.why == f"exit code 1: {path}: No such file or directory"


def _ends(pid: int) -> bool:
    """Whether the process ends within some seconds (a zombie has)."""
    for _ in range(1000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        os.sched_yield()
        asyncio.run(asyncio.sleep(0.01))
    return False


def test_a_program_is_another_one_once_its_files_have_changed_and_not_folders(tmp_path: Path) -> None:
    source, folder = tmp_path / "plugin.py", tmp_path / "production"
    source.write_text("1")
    folder.mkdir()
    processes = PluginProcesses(Inline(), SystemClock())
    program = Program((sys.executable, str(source), str(folder), "--flag"))

    def identity() -> object:
        return asyncio.run(processes.identity(program))

    before = identity()
    (folder / "written by the plugin").touch()
    assert identity() == before
    source.write_text("22")
    assert identity() != before
