"""Builds assets from one snapshot after another: rebuilds what has changed and keeps the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lehr import __version__
from lehr.base.chance import Chance
from lehr.base.diagnostics import Diagnostic, Position, Severity, errors, file_problem
from lehr.base.digest import digest_all, digest_bytes
from lehr.base.documents import MAX_BYTES
from lehr.generate.engine.assembly import PLAIN, TYPES, Assembly, Unit
from lehr.generate.engine.generators import Generators
from lehr.generate.engine.runs import Run
from lehr.generate.engine.type_files import TypeFiles
from lehr.generate.engine.verification import SecondCaller, Verification
from lehr.generate.engine.workspace import (
    WORKSPACE_FILE,
    Workspace,
    missing_workspace,
    read_workspace,
    unknown_types,
)
from lehr.generate.outcome.globs import matcher, may_lead_to
from lehr.generate.outcome.output import Output
from lehr.generate.outcome.problem_list import too_large
from lehr.generate.outcome.protocol import Built, Changed
from lehr.generate.typing.asset_files import read_assets
from lehr.generate.typing.file_digests import FileDigests
from lehr.generate.typing.type_declarations import types_in
from lehr.model.types import Registry
from lehr.sdk.source import FileEntry

if TYPE_CHECKING:
    from lehr.generate.engine.memo import Memo  # does I/O, as its caller expects

Fetch = Callable[[list[str]], Iterator[bytes]]
"""Reads contents of files, in the order of the paths."""

_UNKNOWN_TYPE = ("GEN005", "GEN006")

Read = Callable[[str, bytes, str, Registry], Output]
"""Makes the output of one file: path, content, inputs, types."""


class Build:
    """The worker's state.

    Args:
        run: calls generators, in the sandbox.
        memo: outputs of earlier processes.
        elsewhere: calls generators to verify their outputs; None to trust them.
    """

    def __init__(
        self,
        registry: Registry,
        fetch: Fetch,
        run: Run,
        memo: Memo,
        elsewhere: SecondCaller | None = None,
    ) -> None:
        self._registry = registry
        self._run = run
        self._memo = memo
        self._fetch = fetch
        self._files: dict[str, FileEntry] = {}
        self._digests = FileDigests(registry, self._files, fetch)
        self._assembly = Assembly(registry, self._digests.sealed)
        self._generators = Generators(registry, self._assembly, fetch, run, self._memo)
        self._verification: Verification | None = None
        if elsewhere is not None:
            self._verification = Verification(
                self._generators, self._assembly, registry, self._files, elsewhere, self._memo, Chance()
            )
        self._code: set[str] = set()
        self._dirty: set[str] = set()
        self._workspace: Workspace | None = None
        self._workspace_digest = ""
        self._workspace_problems: list[Diagnostic] = []
        self._types_digest = ""
        self._typing: set[str] = set()
        self._type_files = TypeFiles(run)

    def build(self, changed: Changed) -> Built:
        """Rebuild what the changed files require, and answer with the difference."""
        for path in changed.gone:
            self._files.pop(path, None)
        self._files.update((entry.path, entry) for entry in changed.files)
        self._dirty.update(changed.gone)
        self._dirty.update(entry.path for entry in changed.files)
        if WORKSPACE_FILE in self._dirty or not self._workspace:
            self._read_workspace()
        workspace = self._workspace
        if workspace is None:
            return self._refused(changed.skipped)
        self._read_types(workspace)
        self._read(PLAIN, workspace.assets, read_assets, self._types_digest)
        for path in self._dirty:
            is_code = path in self._files and _any(workspace.generators, path)
            (self._code.add if is_code else self._code.discard)(path)
        problems = self._generators.generate(
            self._code, self._files, self._dirty, self._types_digest, self._type_files.modules
        )
        self._assembly.touched |= self._digests.affected(self._dirty)
        self._dirty.clear()
        interrupted, self._run.interrupted = self._run.interrupted, False
        if interrupted:  # some outputs are missing: without them, the answer would be incomplete
            return Built(None, None, digest_all(()), (), (), (), overtaken=True)
        verification = self._verification
        doubts = [] if verification is None else verification.problems()
        wanted = (*workspace.assets, *workspace.generators, *self._generators.patterns)
        others = [*self._workspace_problems, *unknown_types(workspace, self._registry.types)]
        others += [*_unmatched(workspace, self._files), *problems, *doubts]
        others += _skipped(changed.skipped, wanted)
        upserts, removals, diagnostics = self._assembly.settle(others)
        return Built(
            workspace.partition,
            workspace.limits,
            digest_all((__version__, self._workspace_digest, self._generators.digest)),
            tuple(upserts),
            tuple(removals),
            tuple(self._with_cause(diagnostics)),
            tuple(sorted(item.name for item in self._registry.declared)),
            tuple(self._generators.declared),
            () if verification is None else verification.wanted(),
        )

    def idle(self) -> Iterator[None]:
        """Work that can wait until the answer was sent: a little of it before each `yield`."""
        yield from self._memo.write(self._assembly.get)
        if self._verification is not None:
            yield from self._verification.idle()

    def verify(self, contents: Sequence[bytes]) -> None:
        """Rebuild some outputs in force from the contents of the files that `Built` wanted again."""
        if self._verification is not None:
            self._verification.verify(contents)

    def _with_cause(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        """If a type file has errors, mention it with every unknown type: it may be declared there."""
        if not any(item.code in _UNKNOWN_TYPE for item in diagnostics):
            return diagnostics
        found = ((path, self._assembly.get(Unit(TYPES, path))) for path in sorted(self._typing))
        broken = [path for path, output in found if output is not None and errors(output.diagnostics)]
        if not broken:
            return diagnostics
        first = f"fix {broken[0]} first, if it should declare this type"
        return [
            replace(item, fix=f"{first}; otherwise {item.fix}") if item.code in _UNKNOWN_TYPE else item
            for item in diagnostics
        ]

    def _refused(self, skipped: Iterable[str]) -> Built:
        digest = digest_all((__version__, self._workspace_digest))
        problems = (*self._workspace_problems, *_skipped(skipped, [WORKSPACE_FILE]))
        return Built(None, None, digest, (), (), problems)

    def _read_workspace(self) -> None:
        before = self._workspace
        entry = self._files.get(WORKSPACE_FILE)
        if entry is None:
            self._workspace, self._workspace_digest = None, ""
            self._workspace_problems = [missing_workspace()]
            return
        if entry.size > MAX_BYTES:
            self._workspace, self._workspace_digest = None, entry.content_id
            self._workspace_problems = [too_large(entry)]
            return
        content = next(self._fetch([WORKSPACE_FILE]))
        self._workspace_digest = digest_bytes(content)
        self._workspace, self._workspace_problems = read_workspace(content)
        if self._workspace is not None and (before is None or before.patterns != self._workspace.patterns):
            # The role of each file may have changed: determine it again for every file.
            self._dirty.update(self._files, self._assembly.items(PLAIN), self._assembly.items(TYPES))

    def _read_types(self, workspace: Workspace) -> None:
        """Load the types that the workspace declares; if they change, every asset must be rebuilt."""
        shared = self._type_files.digest
        for path in self._dirty:
            is_type = path in self._files and _any(workspace.types, path)
            (self._typing.add if is_type else self._typing.discard)(path)
        self._type_files.take({path: self._files[path] for path in self._typing}, self._fetch)
        if self._type_files.digest != shared:
            self._dirty.update(self._assembly.items(TYPES))
        self._read(TYPES, workspace.types, self._type_files.read, self._type_files.digest)
        outputs = [self._assembly.get(Unit(TYPES, path)) for path in sorted(self._assembly.items(TYPES))]
        known = [output for output in outputs if output is not None]
        digest = digest_all(asset.digest for output in known for asset in output.assets) if known else ""
        if digest != self._types_digest:
            self._types_digest = digest
            self._registry.declare(types_in(known))
            self._dirty.update(self._assembly.items(PLAIN))

    def _read(self, maker: str, patterns: tuple[str, ...], read: Read, also: str) -> None:
        """Rebuild the changed files that match `patterns`; `also` is an input of all of them."""
        wanted = {}
        for path in sorted(self._dirty):
            unit = Unit(maker, path)
            entry = self._files.get(path)
            if entry is None or not _any(patterns, path):
                self._assembly.drop(unit)
                continue
            inputs = entry.content_id + also
            if entry.size > MAX_BYTES:
                self._assembly.put(unit, Output(inputs, diagnostics=(too_large(entry),)))
                continue
            known = self._assembly.get(unit)
            if known is not None and known.inputs == inputs:
                continue
            kept = self._memo.get(unit, inputs)
            if kept is None:
                wanted[path] = inputs
            else:
                self._assembly.put(unit, kept)
        for (path, inputs), content in zip(wanted.items(), self._fetch(list(wanted)), strict=True):
            output = read(path, content, inputs, self._registry)
            self._assembly.put(Unit(maker, path), output)
            self._memo.note(Unit(maker, path), output)


def _any(patterns: Iterable[str], path: str) -> bool:
    return any(matcher(pattern)(path) for pattern in patterns)


def _unmatched(workspace: Workspace, files: Iterable[str]) -> Iterator[Diagnostic]:
    for pattern, at in workspace.explicit.items():
        if not any(map(matcher(pattern), files)):
            yield file_problem(
                "GEN012",
                at,
                what=f"no file matches `{pattern}`",
                why="a pattern that matches nothing may have a typo",
                fix="fix the pattern, or delete it",
                severity=Severity.WARNING,
            )


def _skipped(paths: Iterable[str], patterns: Iterable[str]) -> Iterator[Diagnostic]:
    for path in paths:
        wanted = next((pattern for pattern in patterns if may_lead_to(path, pattern)), None)
        if wanted is not None:
            yield file_problem(
                "GEN013",
                Position(path),
                what=f"{path} is not read: it is a symbolic link, a submodule or a special file",
                why=f"`{wanted}` matches it, but it could lead anywhere and change unnoticed",
                fix="replace it with the file itself",
                severity=Severity.WARNING,
            )
