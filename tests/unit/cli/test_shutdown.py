"""A program that is asked to end does so, whatever hangs in it. Each is a process of its own."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

TAKE_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"

PROGRAM = """
import asyncio, signal, sys, time
import click
from lehr.base.blocking import Threads
from lehr.cli import shutdown
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever the tests themselves ignore
shutdown._FORCE_SECONDS, shutdown._LINGER_SECONDS = 0.5, 0.1

async def main(ended):
    threads = Threads("source", 1)
    {prepare}
    try:
        await ended.unless({work})
    except shutdown.EndedError:
        pass
    return ended.code

async def say():
    print("ready", flush=True)
    await asyncio.Event().wait()

async def hang(threads):
    print("ready", flush=True)
    await threads.run(time.sleep, 600)

async def block():
    print("ready", flush=True)
    time.sleep(600)

async def stubborn():
    print("ready", flush=True)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

async def plugin():
    async def ends(): raise SystemExit(0)
    task = asyncio.create_task(ends())
    await asyncio.Event().wait()

try:
    shutdown.run_until_ended(main, hangup=lambda: print("looked", flush=True))
except click.exceptions.Exit as end:
    sys.exit(end.exit_code)
"""


@contextmanager
def program(work: str, prepare: str = "pass", terminal: int | None = None) -> Iterator[subprocess.Popen[str]]:
    text = PROGRAM.format(work=work, prepare=prepare)
    if terminal is not None:
        text = TAKE_TERMINAL + text
    process = subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=terminal if terminal is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _out, said = process.communicate(timeout=60)
    return process.returncode, said


def test_sigterm_ends_with_0_and_sigint_with_130() -> None:
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        with program("say()") as process:
            ready(process)
            process.send_signal(number)
            assert ended(process) == (code, "shutting down; production keeps running\n")


def test_a_thread_that_hangs_is_named_and_not_waited_for() -> None:
    with program("hang(threads)") as process:
        ready(process)
        process.send_signal(signal.SIGTERM)
        code, said = ended(process)
        assert code == 0
        assert "exited without waiting for hanging threads: source" in said


@pytest.mark.parametrize("work", ["stubborn()", "block()"])
def test_what_refuses_to_be_cancelled_is_ended_by_force(work: str) -> None:
    with program(work, "ended.after(0.01)") as process:
        ready(process)
        code, said = ended(process)
        assert code == 1
        assert "forced exit" in said


def test_a_blocked_event_loop_is_ended_by_a_second_signal() -> None:
    with program("block()") as process:
        ready(process)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] in (130, 143)


def test_a_blocked_event_loop_is_ended_by_force_after_the_first_signal() -> None:
    with program("block()") as process:
        ready(process)
        process.send_signal(signal.SIGTERM)
        code, said = ended(process)
        assert code == 1
        assert "forced exit" in said


def test_a_time_limit_ends_it_with_1() -> None:
    with program("hang(threads)", "ended.after(0.01)") as process:
        code, said = ended(process)
        assert code == 1
        assert "exited without waiting for hanging threads: source" in said, "not by force"


def test_a_plugin_that_exits_does_not_end_the_program_as_if_all_were_well() -> None:
    with program("plugin()") as process:
        code, said = ended(process)
        assert code == 1
        assert "a plugin ended the program: SystemExit" in said


def test_sighup_without_a_terminal_looks_and_goes_on() -> None:
    with program("say()") as process:
        ready(process)
        process.send_signal(signal.SIGHUP)
        assert process.stdout is not None
        assert process.stdout.readline() == "looked\n"
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0


def test_sighup_of_a_terminal_that_is_gone_ends_it_as_sigterm_does() -> None:
    ours, theirs = pty.openpty()
    with program("say()", terminal=theirs) as process:
        os.close(theirs)
        ready(process)
        os.close(ours)
        code, said = ended(process)
        assert (code, said) == (0, "shutting down; production keeps running\n")
