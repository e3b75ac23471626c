"""Becomes a program: reads what to run from a JSON file, notes its own pid and start, and executes it.

supervisord runs this file with a bare interpreter (`-I -S`), so it imports only the standard library and
starts in some 10 ms. The program keeps the pid; the note of pid and start time lets Lehr identify what a
process runs even if it overwrites its environment (as nginx and PostgreSQL do).
"""

import json
import os
import signal
import sys
import time  # noqa: TID251  (it runs without Lehr)

_LAST_RUNS = 50
"""Number of runs whose start a replica's note keeps."""


def main(path: str) -> None:
    """Become the program in the file at `path`. Exits with 127 or 126, as a shell does, if that fails."""
    with open(path, "rb") as file:
        document = json.load(file)
    command, environment = document["command"], document["environment"]
    _note(document["record"], document["marks"])
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)  # Python ignores them, and that would be inherited
    if "limit" in document:  # of a command, and effective even if Lehr is killed while it runs
        signal.setitimer(signal.ITIMER_REAL, document["limit"])
    else:
        _note_start(document["record"].removesuffix(".run"))
    try:
        os.chdir(document["directory"])
        os.execvpe(command[0], command, environment)
    except OSError as error:
        place = document["directory"] if error.filename is None else error.filename
        sys.stderr.write(f"lehr: cannot run {command[0]} in {place}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _note(path: str, marks: "dict[str, str]") -> None:
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot = file.read().strip()
    former, started = _former(path, boot)
    runs = [run for run in former[:-_LAST_RUNS] if _left_something(int(run["pid"]))]
    runs += former[-_LAST_RUNS:]
    runs.append({"pid": os.getpid(), "start": int(fields[19]), "at": time.time()})
    note = {
        "boot": boot,
        "session": int(fields[3]),
        "marks": marks,
        "runs": runs,
        "started": started + 1,
    }
    new = f"{path}.new"
    try:
        with open(new, "w", encoding="ascii") as file:
            json.dump(note, file)
        os.replace(new, path)
    except OSError as error:  # the environment shows the same, for most programs
        sys.stderr.write(f"lehr: cannot note the process in {path}: {error.strerror}\n")


def _note_start(path: str) -> None:
    """Append when the program starts, and where its logs end; unlike runs, it survives a new definition."""
    start: dict[str, object] = {"at": time.time()}
    for stream in ("stdout", "stderr"):
        try:
            log = os.stat(f"{path}.{stream}.log")
            start[stream] = (log.st_ino, log.st_size)
        except OSError:
            start[stream] = (0, 0)
    starts: list[object] = []
    try:
        with open(f"{path}.starts", encoding="ascii") as noted:
            starts += json.load(noted)
    except (OSError, ValueError, TypeError):
        pass  # the first start, or damage
    try:
        with open(f"{path}.starts.new", "w", encoding="ascii") as file:
            json.dump([*starts[1 - _LAST_RUNS :], start], file)
        os.replace(f"{path}.starts.new", f"{path}.starts")
    except OSError as error:
        sys.stderr.write(f"lehr: cannot note the start in {path}.starts: {error.strerror}\n")


def _former(path: str, boot: str) -> "tuple[list[dict[str, float]], int]":
    """The runs before this one, and their number; Lehr removes the note for a new definition."""
    try:
        with open(path, encoding="ascii") as file:
            note = json.load(file)
        if note["boot"] == boot:
            runs = [{name: run[name] for name in ("pid", "start", "at")} for run in note["runs"]]
            return runs, note["started"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # the first run, or damage: the program is started in any case
    return [], 0


def _left_something(group: int) -> bool:
    """True while processes of a former run are left: workers whose master has died."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


if __name__ == "__main__":
    main(sys.argv[1])
