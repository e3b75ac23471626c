"""Becomes a program: reads what to run from a JSON file, notes its own pid and start, and executes it.

It takes on the program's user, umask and limits itself, after it has read its file and written its note,
which only the user of Lehr can do.

supervisord runs this file with a bare interpreter (`-I -S`), so it imports only the standard library and
starts in some 10 ms. The program keeps the pid; the note of pid and start time lets Lehr identify what a
process runs even if it overwrites its environment (as nginx and PostgreSQL do).
"""

import json
import os
import signal
import stat
import sys
import time  # noqa: TID251  (it runs without Lehr)

_LAST_RUNS = 50
"""Number of runs whose start a replica's note keeps."""

RESOURCES = {
    "address_space": "RLIMIT_AS",
    "core": "RLIMIT_CORE",
    "cpu": "RLIMIT_CPU",
    "data": "RLIMIT_DATA",
    "fsize": "RLIMIT_FSIZE",
    "memlock": "RLIMIT_MEMLOCK",
    "nofile": "RLIMIT_NOFILE",
    "nproc": "RLIMIT_NPROC",
    "stack": "RLIMIT_STACK",
}
"""Names of resources in setrlimit(2), by the names in `limits`."""


def main(path: str, limit: str = "", pid: str = "", *probe: str) -> None:
    """Become the program in the file at `path`. Exits with 127 or 126, as a shell does, if that fails.

    Args:
        path: of the document.
        limit: seconds after which a probe ends.
        pid: of the process that is probed.
        probe: a command that runs as the program does, and is not noted.
    """
    with open(path, "rb") as file:
        document = json.load(file)
    command, directory, run_as = document["command"], document["directory"], document.get("run_as", {})
    if probe:
        command, document["limit"] = list(probe), float(limit)
        for mark in document["marks"]:  # it does not belong to the replica, and ends in time
            del document["environment"][mark]
        document["environment"]["MAINPID"] = pid
    else:
        _note(document["record"], document["marks"])
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)  # Python ignores them, and that would be inherited
    if "limit" in document:  # of a command, and effective even if Lehr is killed while it runs
        signal.setitimer(signal.ITIMER_REAL, document["limit"])
    else:
        _note_start(document["record"].removesuffix(".run"))
    try:
        environment = {**document["environment"], **_variables(document)}
        who = identity(run_as) if "user" in run_as or "user_group" in run_as else None
        if run_as:
            os.get_exec_path({})  # imports what execvpe needs; limits and the user may prevent that
        _limit(run_as.get("limits", {}))
        if "umask" in run_as:
            os.umask(int(run_as["umask"], 8))
        if who is not None:
            _become(*who[:3])
    except (OSError, LookupError, ValueError) as error:
        sys.stderr.write(f"lehr: cannot run {command[0]}: {error}\n")
        sys.exit(126)
    try:
        os.chdir(directory)
        os.execvpe(command[0], command, environment)
    except OSError as error:
        place = directory if error.filename is None else error.filename
        sys.stderr.write(f"lehr: cannot run {command[0]} in {place}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def variables(path: str) -> "dict[str, str]":
    """The variables in an environment file.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is not a variable. The message does not quote it, as it may hold a secret.
    """
    found = {}
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text or text[0] in "#;":
                continue
            name, sign, value = text.removeprefix("export ").partition("=")
            if not sign or not name or not name.isprintable() or " " in name or "\0" in value:
                raise ValueError(f"line {number} of {path} is not NAME=value")
            if name.startswith("LEHR_"):
                raise ValueError(f"line {number} of {path} sets {name}, which is reserved")
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            found[name] = value[1:-1] if quoted else value
    return found


def identity(run_as: "dict[str, str]") -> "tuple[int, int, list[int], dict[str, str]]":
    """Who a replica runs as: uid, gid, all its groups, and the variables that belong to the user.

    Raises:
        LookupError: there is no such user or group.
    """
    import grp  # noqa: PLC0415  (few programs need these)
    import pwd  # noqa: PLC0415

    user, group = run_as.get("user"), run_as.get("user_group")
    uid, gid, name, own = os.geteuid(), os.getegid(), "", {}
    if user is not None:
        try:
            entry = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
            uid, gid, name = entry.pw_uid, entry.pw_gid, entry.pw_name
            own = {"HOME": entry.pw_dir, "SHELL": entry.pw_shell, "USER": name, "LOGNAME": name}
        except KeyError:
            if not user.isdecimal():
                raise LookupError(f"user {user} does not exist") from None
            if group is None:
                raise LookupError(f"user {user} has no entry in passwd, and so no primary group") from None
            uid = int(user)
    if group is not None:
        try:
            gid = int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
        except KeyError:
            raise LookupError(f"group {group} does not exist") from None
    return uid, gid, os.getgrouplist(name, gid) if name else [gid], own


def _variables(document: "dict[str, dict[str, str]]") -> "dict[str, str]":
    """The variables of user and environment file, except those that intent declares."""
    run_as, given = document.get("run_as", {}), document["environment"]
    found = identity(run_as)[3] if "user" in run_as else {}
    if "environment_file" in run_as:
        found |= variables(os.path.join(str(document["directory"]), run_as["environment_file"]))
    return {
        name: value for name, value in found.items() if name in document["inherited"] or name not in given
    }


def _limit(limits: "dict[str, int | str]") -> None:
    """Take on limits, which only root may raise: before the user is another one."""
    for name, limit in limits.items():
        import resource  # noqa: PLC0415

        number = getattr(resource, RESOURCES[name])
        value = resource.RLIM_INFINITY if limit == "unlimited" else int(limit)
        try:
            resource.setrlimit(number, (value, value))
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot set limits.{name} to {limit}: {error}") from error


def _become(uid: int, gid: int, groups: "list[int]") -> None:
    """Take on user and groups."""
    if (uid, gid) == (os.geteuid(), os.getegid()):
        return
    for stream in (1, 2):
        if stat.S_ISFIFO(os.fstat(stream).st_mode):  # to supervisord; a program may open it as /dev/stderr
            os.fchown(stream, uid, gid)
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(uid)


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
    main(*sys.argv[1:])
