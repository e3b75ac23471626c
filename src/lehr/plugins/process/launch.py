"""Becomes a program: reads what to run from a JSON file, notes its own pid, and executes it.

supervisord runs this file with a bare interpreter (`-I -S`), so it imports the standard library
alone and starts in some 10 ms. The program keeps the pid; the note of pid and start time lets
Lehr tell what a process runs even if it overwrites its environment (as nginx and PostgreSQL do).
"""

import json
import os
import signal
import sys


def main(path: str) -> None:
    """Become what the file at `path` says. Ends with 127 or 126, as a shell does, if that fails."""
    with open(path, "rb") as file:
        document = json.load(file)
    command, environment = document["command"], document["environment"]
    _note(document["record"], document["marks"])
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)  # Python ignores them, and that would be inherited
    try:
        os.chdir(document["directory"])
        os.execvpe(command[0], command, environment)
    except OSError as error:
        place = document["directory"] if error.filename is None else error.filename
        sys.stderr.write(f"lehr: cannot run {command[0]} in {place}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _note(path: str, marks: "dict[str, str]") -> None:
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        start = int(file.read().rpartition(")")[2].split()[19])
    new = f"{path}.new"
    try:
        with open(new, "w", encoding="ascii") as file:
            json.dump({"pid": os.getpid(), "start": start, "marks": marks}, file)
        os.replace(new, path)
    except OSError as error:  # the environment tells the same, for most programs
        sys.stderr.write(f"lehr: cannot note the process in {path}: {error.strerror}\n")


if __name__ == "__main__":
    main(sys.argv[1])
