"""Calls the code of generator authors. Runs in the sandbox; returns results as values."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, Severity, errors
from lehr.base.documents.text import number_problem
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox.denials import DeniedError
from lehr.generate.sandbox.forks import LimitError, Send, cpu_limit
from lehr.generate.sandbox.module_imports import closure
from lehr.generate.typing.problems import quoted, show
from lehr.sdk.generator import (
    Annotation,
    AssetView,
    Declaration,
    DeclaredAsset,
    SourceFile,
    UnreadableFileError,
    declaration,
)
from lehr.sdk.templates import provided
from lehr.sdk.types import DeclaredClass, declaration_of, declared_classes

Argument = SourceFile | AssetView | list[SourceFile] | list[AssetView]


class FoundGenerator(msgspec.Struct, frozen=True):
    """A generator that a module declares."""

    name: str
    declaration: Declaration
    line: int


class Module(msgspec.Struct, frozen=True):
    """The generators that a module declares, or why it cannot be read.

    Attributes:
        uses: paths of all code that its generators depend on: its own, and its imports.
    """

    generators: tuple[FoundGenerator, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    uses: tuple[str, ...] = ()


class FoundType(msgspec.Struct, frozen=True):
    """A type that a module declares.

    Attributes:
        declaration: the equivalent type file as JSON; None if there is none.
        problem: why there is none.
    """

    name: str
    line: int
    declaration: bytes | None
    problem: str = ""


class Types(msgspec.Struct, frozen=True):
    """The types that a module declares, or why it cannot be read."""

    types: tuple[FoundType, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


class Record(msgspec.Struct, frozen=True):
    """One thing that a generator yielded.

    Attributes:
        body: JSON of the asset's document, or of the annotation's value.
        addon: name of the annotation's addon; None for an asset.
        line: line of the `yield` in the generator.
    """

    id: str
    body: bytes
    addon: str | None
    line: int


class CallOutput(msgspec.Struct, frozen=True):
    """The output of one call.

    Attributes:
        repeatable: False if a limit ended it.
    """

    records: tuple[Record, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    repeatable: bool = True


class WrongYieldError(Exception):
    """A generator gave something that is not an asset or an annotation."""

    def __init__(self, code: str, what: str, fix: str, line: int) -> None:
        super().__init__(what)
        self.code = code
        self.fix = fix
        self.line = line


_PYTHON = ".py"
_MESSAGE = 500
_FRAMING = 40  # bytes of a record in an answer in addition to its content
_DIGITS = bytes(48 if chr(byte).isdecimal() else 32 for byte in range(256))
_LONG = b"0" * 20
"""Text that only large integers contain, once all digits are `0`. Twenty times as fast as a regex."""
_encode = msgspec.msgpack.Encoder().encode


def describe(path: str, code: Mapping[str, bytes], limits: SandboxLimits, send: Send) -> None:
    """Import the module at `path` and send its `Module`."""
    printed: list[Diagnostic] = []
    try:
        with cpu_limit(limits.cpu_seconds), _listening(path, Position(path), printed):
            module = _import(path, code)
        found = []
        for name, value in vars(module).items():
            declared = declaration(value)
            if declared is not None and getattr(value, "__module__", None) == module.__name__:
                found.append(FoundGenerator(name, declared, value.__code__.co_firstlineno))
        uses = closure(path, code, _loaded())
        send(_encode(Module(tuple(found), tuple(printed), uses)))
    except BaseException as err:  # also those that are meant to end a program
        problems = _explain(err, path, Position(path), code, "GEN020", "cannot be imported")
        send(_encode(Module((), tuple(problems))))


def describe_types(path: str, code: Mapping[str, bytes], limits: SandboxLimits, send: Send) -> None:
    """Import the module at `path`, which declares types, and send its `Types`."""
    printed: list[Diagnostic] = []
    try:
        with cpu_limit(limits.cpu_seconds), _listening(path, Position(path), printed):
            module = _import(path, code, path)  # annotations find it by this name
            found = [_declared_type(path, mark, kind) for mark, kind in declared_classes(vars(module))]
        send(_encode(Types(tuple(found), tuple(printed))))
    except BaseException as err:  # also those that are meant to end a program
        problems = _explain(err, path, Position(path), code, "GEN020", "cannot be imported")
        send(_encode(Types((), tuple(problems))))


def _declared_type(path: str, mark: DeclaredClass, kind: type[msgspec.Struct]) -> FoundType:
    try:
        return FoundType(str(mark.name), mark.line, msgspec.json.encode(declaration_of(kind, mark)))
    except (ValueError, TypeError, RecursionError) as err:
        return FoundType(str(mark.name), mark.line, None, f"{err}")


def call_each(
    path: str,
    name: str,
    arguments: Iterable[Argument],
    code: Mapping[str, bytes],
    limits: SandboxLimits,
    send: Send,
) -> None:
    """Call generator `name` of the module at `path` with each argument, and send a `CallOutput` for each.

    Stops after an answer that is not repeatable: a call that overran a limit once would do so again.
    """
    function = getattr(_import(path, code), name)
    with provided({path: content for path, content in code.items() if not path.endswith(_PYTHON)}):
        for argument in arguments:
            answer = _call(path, name, function, argument, code, limits)
            send(_encode(answer))
            if not answer.repeatable:
                return


def _call(
    path: str, name: str, function: Any, argument: Argument, code: Mapping[str, bytes], limits: SandboxLimits
) -> CallOutput:
    printed: list[Diagnostic] = []
    at = Position(path, function.__code__.co_firstlineno)
    try:
        with cpu_limit(limits.cpu_seconds), _listening(f"{path}:{name}", at, printed):
            records = tuple(_records(function, argument, limits.answer_bytes))
        return CallOutput(records, tuple(printed))
    except BaseException as err:  # also those that are meant to end a program
        subject = argument.path if isinstance(argument, SourceFile) else ""
        subject = argument.id if isinstance(argument, AssetView) else subject
        what = f"failed on {quoted(subject)}" if subject else "failed"
        problems = _explain(err, f"{path}:{name}", at, code, "GEN022", what)
        return CallOutput((), tuple(problems), not isinstance(err, LimitError | MemoryError))


@contextlib.contextmanager
def _listening(subject: str, at: Position, problems: list[Diagnostic]) -> Iterator[None]:
    """Catch printed output, and add a warning to `problems` if there was any."""
    caught = _Caught()
    with contextlib.redirect_stdout(caught), contextlib.redirect_stderr(caught):
        yield
    if caught.anything:
        problems.append(
            Diagnostic(
                code="GEN028",
                what=f"{subject} prints",
                why="the output of generators is discarded",
                fix="delete the print, or raise an error with this message",
                subject=subject,
                at=at,
                severity=Severity.WARNING,
            )
        )


class _Caught(io.TextIOBase):
    """Records that something was written, and discards it."""

    anything = False

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self.anything = self.anything or bool(text)
        return len(text)


def _records(function: Any, argument: Argument, most: int) -> list[Record]:
    first_line = function.__code__.co_firstlineno
    yielded = function(argument)
    if not isinstance(yielded, Iterable) or isinstance(yielded, str | bytes | dict):
        what = f"it returned {'nothing' if yielded is None else _kind(yielded)}, not assets"
        raise WrongYieldError("GEN027", what, "`yield` each asset", first_line)
    records = []
    size = 0
    for item in yielded:
        frame = getattr(yielded, "gi_frame", None)
        record = _record(item, frame.f_lineno if frame is not None else first_line)
        size += len(record.body) + len(record.id) + _FRAMING
        if size > most:  # reported while there is memory for it
            what = f"it yielded more than {most:,} bytes"
            raise WrongYieldError("GEN025", what, "look for an endless loop", record.line)
        records.append(record)
    return records


def _record(item: object, line: int) -> Record:
    fix = "yield what `asset(...)` or `annotate(...)` of lehr.sdk.generator returns"
    if isinstance(item, DeclaredAsset):
        document = {"id": item.id, "type": item.type, "payload": item.payload, "addons": item.addons}
        if item.version is not None:
            document["version"] = item.version
        if item.versions:
            document["versions"] = item.versions
        addon, value = None, document
    elif isinstance(item, Annotation):
        addon, value = item.addon, item.value
        if not isinstance(addon, str):
            raise WrongYieldError("GEN027", "it yielded an annotation whose addon is not a string", fix, line)
    else:
        raise WrongYieldError("GEN027", f"it yielded {_kind(item)}, not an asset", fix, line)
    if not isinstance(item.id, str):
        raise WrongYieldError("GEN027", f"it yielded the id {_kind(item.id)}, not a string", fix, line)
    try:
        body = msgspec.json.encode(value)
        item.id.encode()
        # The encoder turns a non-finite number into `null`.
        if b"null" in body or _LONG in body.translate(_DIGITS):
            _check_numbers(msgspec.to_builtins(value))
        return Record(item.id, body, addon, line)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as err:
        what = f"it yielded {quoted(item.id)} with a value that is not plain data: {err}"
        raise WrongYieldError("GEN027", what, "use mappings, lists, strings and numbers", line) from err


def _check_numbers(value: object) -> None:
    """Raise `ValueError` for a number in plain data that a document could not hold."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            rest += item.values()
        elif isinstance(item, list | tuple):
            rest += item
        elif isinstance(item, int | float) and (problem := number_problem(item)) is not None:
            raise ValueError(f"{show(item)} is in it, and {problem}")


def _kind(value: object) -> str:
    if value is None or isinstance(value, str | int | float | list | dict):
        return show(value)
    return f"an object of {type(value).__name__}"


class _Finder(MetaPathFinder, Loader):
    """Imports modules from the snapshot, with lower precedence than installed ones."""

    def __init__(self, code: Mapping[str, bytes]) -> None:
        self._paths = {PurePosixPath(path).stem: path for path in code if path.endswith(_PYTHON)}
        self._code = code

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name in self._paths else None

    def exec_module(self, module: ModuleType) -> None:
        path = self._paths[module.__name__]
        exec(compile(self._code[path], path, "exec"), vars(module))  # noqa: S102  that is what generators are


def _loaded() -> list[str]:
    """Names of the modules imported from the snapshot."""
    loaders = {
        name: getattr(getattr(item, "__spec__", None), "loader", None) for name, item in sys.modules.items()
    }
    return [name for name, loader in loaders.items() if isinstance(loader, _Finder)]


def _import(path: str, code: Mapping[str, bytes], name: str | None = None) -> ModuleType:
    """The module at `path` itself, even if an installed module has the same name.

    Args:
        name: its name, instead of the file's.
    """
    sys.meta_path.append(_Finder(code))
    module = ModuleType(name or PurePosixPath(path).stem)
    sys.modules.setdefault(module.__name__, module)
    exec(compile(code[path], path, "exec"), vars(module))  # noqa: S102
    return module


def _explain(
    err: BaseException, subject: str, declared: Position, code: Mapping[str, bytes], failed: str, what: str
) -> list[Diagnostic]:
    """Why the generator or module `subject` failed, and where in the author's code, or else `declared`."""
    at = _place(err, code) or declared
    fix = "fix this line, or the input of the call"
    match err:
        case UnreadableFileError() if errors(err.diagnostics):
            return list(err.diagnostics)
        case UnreadableFileError():
            why = "it raised UnreadableFileError without an error that describes the problem"
        case WrongYieldError():
            failed, why, fix, at = err.code, str(err), err.fix, Position(declared.file, err.line)
        case DeniedError():
            failed, why, fix = "GEN023", str(err), "read the data from source files, as the argument"
        case LimitError():
            failed, why, fix = "GEN024", "it used up its processor time", "look for an endless loop"
        case MemoryError():
            failed, why = "GEN025", "it ran out of memory"
            fix = "look for a collection that grows without limit"
        case ModuleNotFoundError():
            why = _message(err)
            fix = "fix the name; import a module next to it with an `import` statement"
        case SyntaxError(filename=str(file)) if file in code:
            why, at = f"SyntaxError: {err.msg}", Position(file, err.lineno or 0, err.offset or 0)
        case _:
            why = _message(err)
    return [Diagnostic(code=failed, what=f"{subject} {what}", why=why, fix=fix, subject=subject, at=at)]


def _place(err: BaseException, code: Mapping[str, bytes]) -> Position | None:
    """The innermost line of the authors' own code that `err` came through."""
    found = None
    step = err.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file in code:
            found = Position(file, step.tb_lineno)
        step = step.tb_next
    return found


def _message(err: BaseException) -> str:
    try:
        text = str(err)
    except Exception:  # an author's own exception class may fail
        text = "(its message cannot be shown)"
    line = f"{type(err).__name__}: {text}" if text else type(err).__name__
    line = line.encode(errors="backslashreplace").decode()  # a lone surrogate cannot be sent
    return line if len(line) <= _MESSAGE else line[: _MESSAGE - 3] + "..."
