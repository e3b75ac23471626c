"""Files that declare types: documents, Python modules, and descriptor sets whose messages documents name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import PurePosixPath

import msgspec

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Position, Severity, file_problem
from lehr.base.digest import digest_all
from lehr.base.documents import MAX_BYTES
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.output import Output
from lehr.generate.typing.conversion import always
from lehr.generate.typing.type_declarations import Known, declare, read_declarations, type_problem
from lehr.model.asset import Asset
from lehr.model.message_types import DescriptorError, Messages
from lehr.model.types import Registry
from lehr.sdk.source import FileEntry

MODULE = ".py"
DESCRIPTORS = (".binpb", ".desc", ".pb", ".protoset")
"""Suffix of the output of `protoc --descriptor_set_out --include_imports` and `buf build`."""


class TypeFiles:
    """The type files of the newest snapshot. Modules import each other; declarations name messages.

    Attributes:
        digest: digest of everything that the reading of several files depends on.
    """

    def __init__(self, run: Run) -> None:
        self.digest = ""
        self._run = run
        self._code: dict[str, bytes] = {}
        self._messages = Messages()
        self._problems: dict[str, str] = {}

    @property
    def modules(self) -> Collection[str]:
        """Paths of all Python files."""
        return self._code.keys()

    def take(self, files: Mapping[str, FileEntry], fetch: Callable[[list[str]], Iterator[bytes]]) -> None:
        """Read the shared files if any has changed. `files` are all type files."""
        shared = {
            path: entry.content_id
            for path, entry in sorted(files.items())
            if path.endswith((MODULE, *DESCRIPTORS)) and entry.size <= MAX_BYTES
        }
        digest = digest_all(part for item in shared.items() for part in item) if shared else ""
        if digest == self.digest:
            return
        self.digest = digest
        contents = dict(zip(shared, fetch(list(shared)), strict=True))
        self._code = {path: content for path, content in contents.items() if path.endswith(MODULE)}
        self._messages, self._problems = Messages(), {}
        for path in contents.keys() - self._code.keys():
            try:
                self._messages.add(contents[path])
            except DescriptorError as error:
                self._problems[path] = str(error)

    def read(self, path: str, content: bytes, inputs: str, registry: Registry) -> Output:
        """The types that the file declares, as assets, and all problems in it."""
        if path.endswith(DESCRIPTORS):
            return Output(inputs, diagnostics=tuple(self._unusable(path)))
        if not path.endswith(MODULE):
            loaded = documents.load(path, content)
            return read_declarations(loaded, inputs, Known(registry, self._messages))
        if PurePosixPath(path).name.startswith("_"):
            return Output(inputs)
        return self._of_module(path, inputs, registry)

    def _unusable(self, path: str) -> Iterator[Diagnostic]:
        if path in self._problems:
            fix = "write it with `protoc --descriptor_set_out --include_imports`, or `buf build`"
            yield type_problem(f"{path} is not a descriptor set", self._problems[path], fix, Position(path))

    def _of_module(self, path: str, inputs: str, registry: Registry) -> Output:
        module = self._run.describe_types(path, self._code)
        diagnostics = list(module.diagnostics)
        assets: list[Asset] = []
        for found in module.types:
            at = Position(path, found.line)
            if found.declaration is None:
                fix = "declare a frozen msgspec.Struct of plain fields"
                diagnostics.append(type_problem(f"`{found.name}` cannot be a type", found.problem, fix, at))
                continue
            payload = msgspec.json.decode(found.declaration)
            asset, problems = declare(found.name, payload, registry, always(at))
            diagnostics += problems
            if asset is not None:
                assets.append(asset)
        if not module.types and not diagnostics:
            diagnostics.append(_declares_nothing(path))
        return Output(inputs, tuple(assets), (), tuple(diagnostics))


def _declares_nothing(path: str) -> Diagnostic:
    return file_problem(
        "GEN015",
        Position(path),
        what=f"{path} declares no type",
        why="no class in it has the decorator `@asset_type(...)` or `@addon_type(...)`",
        fix="add the decorator; or, if other modules import it, start its name with `_`",
        severity=Severity.WARNING,
    )
