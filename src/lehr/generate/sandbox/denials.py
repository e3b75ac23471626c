"""Makes forbidden actions of generators fail with an ordinary error.

Best effort, in two layers: an audit hook sees what CPython reports (files, processes, network),
and functions that it does not report (clock, randomness, threads) are replaced.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

_PREFIXES = (
    "ctypes.",
    "fcntl.",
    "ftplib.",
    "glob.",
    "http.client.",
    "mmap.",
    "os.",
    "pathlib.",
    "pty.",
    "resource.",
    "shutil.",
    "signal.",
    "smtplib.",
    "socket.",
    "sqlite3.",
    "subprocess.",
    "syslog.",
    "tempfile.",
    "time.",
    "urllib.",
    "webbrowser.",
)

_FUNCTIONS = {
    "time": (
        "asctime clock_gettime clock_gettime_ns ctime gmtime localtime monotonic monotonic_ns perf_counter "
        "perf_counter_ns process_time process_time_ns sleep strftime thread_time thread_time_ns time time_ns"
    ),
    "os": (
        "abort access cpu_count getloadavg getpid getppid getrandom kill killpg lstat nice readlink "
        "stat statvfs times uname urandom"
    ),
    "random": "SystemRandom _urandom",
    "secrets": "choice randbelow randbits token_bytes token_hex token_urlsafe",
    "uuid": "getnode uuid1 uuid4",
    "_thread": "start_new_thread start_joinable_thread",
    "threading": "_start_new_thread _start_joinable_thread",
}

_ASKED = {
    "os": "getcwd getcwdb getegid getenv getenvb geteuid getgid getgroups getlogin getresuid getuid",
    "os.path": "exists isdir isfile islink ismount lexists",
    "platform": "machine node platform processor release system uname version",
}
"""Queries that libraries make on import; they get no answer about the machine, or one known before. Authors
who need such data must use an input."""


_ACCOUNTS = {"pwd": "getpwall getpwnam getpwuid", "grp": "getgrall getgrgid getgrnam"}
"""Lookups that libraries make to find a home folder. The C library would ask other processes."""


class DeniedError(PermissionError):
    """A generator accessed something that is not one of its declared inputs."""


def preload() -> None:
    """Import what `deny` changes, while imports are still unrestricted."""
    for name in (*_FUNCTIONS, *_ASKED, *_ACCOUNTS, "datetime"):
        importlib.import_module(name)


def deny() -> None:
    """Permanently deny files, processes, network, clock, randomness and threads to this process.

    Only files that Python's import system needs stay readable.
    """
    os.environ.clear()
    _replace(_FUNCTIONS, lambda name, _function: _refusal(name))
    _replace(_ASKED, _for_libraries)
    _replace(_ACCOUNTS, lambda name, _function: _for_libraries(name, _no_account))
    for environment in (os.environ, os.environb):
        environment.__class__ = _Environment  # code that has imported the object has this one
    _deny_shared_random()
    _deny_today()
    sys.addaudithook(_Hook(_readable_folders()))


def _replace(functions: Mapping[str, str], by: Callable[[str, Any], Any]) -> None:
    """Replace functions, named by module, as far as this version of Python has them."""
    for module_name, names in functions.items():
        module = importlib.import_module(module_name)
        for name in names.split():
            if hasattr(module, name):
                setattr(module, name, by(f"{module_name}.{name}", getattr(module, name)))


class _Hook:
    def __init__(self, readable: tuple[str, ...]) -> None:
        self._readable = readable

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir"):
            self._check_path(event, arguments)
        elif event.startswith(_PREFIXES):
            raise DeniedError(f"{event} is denied to generators")

    def _check_path(self, event: str, arguments: tuple[Any, ...]) -> None:
        path = arguments[0]
        text = os.fsdecode(path) if isinstance(path, str | bytes) else ""
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        if writes or not (os.path.normpath(text) + "/").startswith(self._readable):
            shown = repr(text) if text else "a descriptor"
            raise DeniedError(
                f"{event} of {shown} is denied to generators; they may only read declared inputs"
            )


def _readable_folders() -> tuple[str, ...]:
    return tuple(sorted({os.path.abspath(folder).rstrip("/") + "/" for folder in sys.path if folder}))


def _refusal(name: str) -> Any:
    def refuse(*_arguments: object, **_options: object) -> NoReturn:
        raise DeniedError(f"{name} is denied to generators: their output may depend only on their input")

    return refuse


def _for_libraries(name: str, function: Any) -> Any:
    def ask(*arguments: Any, **options: Any) -> Any:
        _refuse_authors(name)
        return function(*arguments, **options)

    return ask


def _no_account(*_arguments: object) -> NoReturn:
    raise KeyError("generators cannot look up accounts")


class _Environment(type(os.environ)):  # type: ignore[misc]  # typeshed declares it otherwise
    """The environment, which is empty, and which authors may not even read."""

    def __getitem__(self, key: Any) -> Any:
        _refuse_authors("os.environ")
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        _refuse_authors("os.environ")
        return super().__iter__()

    def __len__(self) -> Any:
        _refuse_authors("os.environ")
        return super().__len__()


def _refuse_authors(name: str) -> None:
    """Fail if the caller is an author's code: its file name is the path in the snapshot, not absolute."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen "):  # of `os` itself
        frame = frame.f_back
    if not frame.f_code.co_filename.startswith(("/", "<")):
        _refusal(name)()


def _deny_shared_random() -> None:
    """Deny the shared random numbers; a `Random` with its own seed is repeatable."""
    random: Any = importlib.import_module("random")
    shared = random._inst
    for name in random.__all__:
        if getattr(getattr(random, name), "__self__", None) is shared:
            setattr(random, name, _refusal(f"random.{name}"))

    class Random(random.Random):  # type: ignore[misc]
        def __init__(self, seed: Any = None) -> None:
            if seed is None:
                _refusal("random.Random without a seed")()
            super().__init__(seed)

    random.Random = Random


def _deny_today() -> None:
    """Deny the clock behind `datetime`, whose classes cannot be changed, only replaced."""
    module: Any = importlib.import_module("datetime")
    for original, names in ((module.date, ("today",)), (module.datetime, ("now", "today", "utcnow"))):
        denied = {name: staticmethod(_refusal(f"datetime.{original.__name__}.{name}")) for name in names}
        setattr(module, original.__name__, _look_alike(original)(original.__name__, (original,), denied))


def _look_alike(original: type) -> type:
    class LookAlike(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

    return LookAlike
