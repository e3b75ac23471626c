"""Keeps the outputs of all generators up to date, running only what must run again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from lehr.base.diagnostics import Diagnostic, Position, Severity, errors, file_problem
from lehr.base.digest import digest_all, digest_bytes
from lehr.base.documents import MAX_BYTES
from lehr.generate.engine.assembly import ALL, Assembly, Unit
from lehr.generate.engine.records import output_of
from lehr.generate.engine.runs import Run
from lehr.generate.engine.schedule import Generator, generator_of, in_order
from lehr.generate.engine.templates import Templates
from lehr.generate.outcome.globs import matcher
from lehr.generate.outcome.output import Output
from lehr.generate.outcome.problem_list import too_large
from lehr.generate.policies.derived_assets import DerivingRule
from lehr.generate.policies.policy_set import Policies
from lehr.generate.sandbox.authors import Argument, CallOutput
from lehr.model.asset import Asset, AssetId
from lehr.model.provenance import DeclaredGenerator
from lehr.model.types import Registry
from lehr.sdk.generator import AssetView, Reads, SourceFile
from lehr.sdk.source import FileEntry

if TYPE_CHECKING:
    from lehr.generate.engine.memo import Memo  # does I/O, as its caller expects

MAX_INPUT_BYTES = 64 * 1024 * 1024
"""Maximum size of a file, or set of files, passed to one call."""

Inputs = dict[str, str | None]
"""By item, the digest or id of all inputs of its call; None if the item does not exist (any more)."""


class Generators:
    """The generators of the newest snapshot.

    Attributes:
        digest: digest of all code.
    """

    def __init__(
        self,
        registry: Registry,
        assembly: Assembly,
        fetch: Callable[[list[str]], Iterator[bytes]],
        run: Run,
        memo: Memo,
    ) -> None:
        self.digest: str = digest_all(())
        self._registry = registry
        self._assembly = assembly
        self._fetch = fetch
        self._run = run
        self._memo = memo
        self._code: dict[str, bytes] = {}
        self._code_digests: dict[str, str] = {}
        self._content_ids: dict[str, str] = {}
        self._problems: list[Diagnostic] = []
        self._ordered: list[Generator] = []
        self._unfinished: set[Unit] = set()
        self._policies = Policies(registry, assembly, fetch)
        self._functions: list[Generator] = []
        self._unordered: list[Diagnostic] = []
        self._ran: set[str] = set()
        self._templates = Templates(fetch)

    @property
    def patterns(self) -> list[str]:
        """Those of the files that generators read, as of the last call of `generate`."""
        found = [generator.found.declaration.of for generator in self._ordered if generator.over_files]
        return found + [pattern for item in self._ordered if (pattern := item.found.declaration.templates)]

    @property
    def ordered(self) -> Sequence[Generator]:
        """All functions that can run, in the order of execution."""
        return [generator for generator in self._ordered if generator.rule is None]

    def code_digest(self, generator: Generator) -> str:
        """Digest of all code and templates that its output depends on, and of the declared types."""
        code = self._code_digests[generator.name]
        if not generator.found.declaration.templates:
            return code
        return digest_all((code, *(part for item in self._templates.ids(generator).items() for part in item)))

    def code_of(self, generator: Generator) -> dict[str, bytes]:
        """Source of its module and of all modules that it may import, and its templates."""
        code = {path: self._code[path] for path in generator.uses}
        return code | self._templates.contents(generator)

    def paths_of(self, generator: Generator, item: str, files: Iterable[str]) -> list[str]:
        """Paths of the files passed to it for an item."""
        declaration = generator.found.declaration
        if declaration.reads is Reads.FILE:
            return [item]
        return sorted(filter(matcher(declaration.of), files)) if declaration.reads is Reads.FILES else []

    def arguments_of(
        self, generator: Generator, items: Iterable[str], contents: Mapping[str, bytes]
    ) -> list[Argument]:
        """Its arguments for each of some items, all of which have an output."""
        match generator.found.declaration.reads:
            case Reads.FILE:
                return [SourceFile(path, contents[path]) for path in items]
            case Reads.FILES:
                return [[SourceFile(path, content) for path, content in contents.items()]]
            case Reads.ASSETS:
                return [[_view(asset) for asset in self._assets(generator)]]
            case Reads.ASSET:
                assets = [self._assembly.asset(AssetId(item)) for item in items]
                return [_view(asset) for asset in assets if asset is not None]

    @property
    def declared(self) -> Iterator[DeclaredGenerator]:
        """All generators, in the order in which they run, as of the last call of `generate`.

        Mutations by policies come last, although they are applied to each asset as soon as it is declared.
        """
        for item in self._ordered:
            what = item.found.declaration
            yield DeclaredGenerator(item.name, item.found.line, what.reads.value, what.of, what.makes)
        yield from self._policies.declared

    def generate(
        self,
        code: Collection[str],
        files: Mapping[str, FileEntry],
        dirty: set[str],
        types: str = "",
        classes: Iterable[str] = (),
    ) -> list[Diagnostic]:
        """Bring every output up to date.

        Args:
            code: paths of all modules.
            files: every file of the snapshot.
            dirty: paths of files that may differ from the last call, or are gone.
            types: digest of the types that the workspace declares: they validate outputs.
            classes: paths of modules that declare types: generators may import them.

        Returns:
            Problems that do not belong to a single output.
        """
        imported = [path for path in sorted(classes) if path not in code]
        modules = {path: files[path] for path in (*imported, *sorted(code))}
        fresh = self._read_code(modules, types, frozenset(imported))
        restyled = self._templates.update(self.ordered, files, dirty)
        for generator in self._ordered:
            if generator.over_files:
                whole = fresh or generator.name in restyled
                inputs = self._known_items(generator, whole)
                inputs |= self._file_inputs(generator, files, dirty, whole)
                self._update(generator, inputs, files)
        reloaded = self._load_policies(types)
        for generator in self._ordered:
            if not generator.over_files:
                whole = fresh or generator.name in reloaded | restyled or generator.name not in self._ran
                inputs = self._known_items(generator, whole) | self._asset_inputs(generator, whole)
                self._update(generator, inputs, files)
        self._ran = {generator.name for generator in self._ordered}
        self._policies.load_late()
        return [*self._problems, *self._unordered, *self._policies.problems]

    def _known_items(self, generator: Generator, fresh: bool) -> Inputs:
        """With other code, the same name may mean other items: check each before reusing it."""
        return dict.fromkeys(self._assembly.items(generator.name)) if fresh else {}

    def _load_policies(self, types: str) -> set[str]:
        """Load the deriving rules of policies; return names of those that changed."""
        before = {item.name: self._code_digests[item.name] for item in self._ordered if item.rule is not None}
        if self._policies.update():
            self._order()
        rules = {item.name: item.rule for item in self._ordered if item.rule is not None}
        digests = {name: digest_all((types, self._policies.digest_of(rule))) for name, rule in rules.items()}
        self._code_digests |= digests
        return {name for name, digest in digests.items() if before.get(name) != digest}

    def _order(self) -> None:
        """Sort everything that runs, and forget the outputs of what is gone."""
        rules = map(generator_of, self._policies.deriving)
        self._ordered, self._unordered = in_order([*self._functions, *rules], self._registry)
        for maker in set(self._assembly.makers()) - {generator.name for generator in self._ordered}:
            for item in self._assembly.items(maker):
                self._assembly.drop(Unit(maker, item))

    def _read_code(self, modules: Mapping[str, FileEntry], types: str, imported: frozenset[str]) -> bool:
        """Import the modules if they have changed, except those that only others import.

        Returns:
            True if any output may need to be rebuilt.
        """
        content_ids = {path: entry.content_id for path, entry in modules.items()} | {"": types}
        if content_ids == self._content_ids and not errors(self._problems):
            return False
        self._content_ids = content_ids
        read = [path for path, entry in modules.items() if entry.size <= MAX_BYTES]
        self._code = dict(zip(read, self._fetch(read), strict=True))
        digests = {path: digest_bytes(content) for path, content in self._code.items()}
        self.digest = digest_all((types, *(part for item in digests.items() for part in item)))
        generators: list[Generator] = []
        problems = [too_large(entry) for entry in modules.values() if entry.size > MAX_BYTES]
        for path in self._code:
            if path in imported or PurePosixPath(path).name.startswith("_"):
                continue
            module = self._run.describe(path, self._code)
            problems += module.diagnostics
            if not module.generators and not errors(module.diagnostics):
                problems.append(_declares_nothing(path))
            generators += [Generator(path, found, module.uses) for found in module.generators]
        self._functions, self._problems = generators, problems
        self._order()
        self._code_digests |= {
            item.name: digest_all((types, *(part for path in item.uses for part in (path, digests[path]))))
            for item in generators
        }
        return True

    def _file_inputs(
        self, generator: Generator, files: Mapping[str, FileEntry], dirty: set[str], fresh: bool
    ) -> Inputs:
        matches = matcher(generator.found.declaration.of)
        code = self.code_digest(generator)
        if generator.found.declaration.reads is Reads.FILES:
            if not fresh and not any(map(matches, dirty)):
                return {}
            found = sorted(path for path in files if matches(path))
            parts = (part for path in found for part in (path, files[path].content_id))
            return {ALL: digest_all((code, *parts)) if found else None}
        paths = files if fresh else dirty
        inputs: Inputs = {}
        for path in sorted(paths):
            if matches(path):
                entry = files.get(path)
                inputs[path] = None if entry is None else f"{code} {entry.content_id}"
        return inputs

    def _asset_inputs(self, generator: Generator, fresh: bool) -> Inputs:
        assembly, wanted = self._assembly, generator.wants()
        code = self.code_digest(generator)
        if generator.found.declaration.reads is Reads.ASSETS:
            if not fresh and not assembly.touched:
                return {}
            found = self._assets(generator)
            parts = (part for asset in found for part in (asset.id, asset.digest))
            return {ALL: digest_all((code, *parts)) if found else None}
        ids = assembly.ids() if fresh else assembly.touched
        inputs: Inputs = {}
        for id in sorted(ids):
            asset = assembly.asset(AssetId(id))
            fits = asset is not None and wanted(asset)
            inputs[id] = f"{code} {asset.digest}" if asset is not None and fits else None
        return inputs

    def _assets(self, generator: Generator) -> list[Asset]:
        wanted = generator.wants()
        every = (self._assembly.asset(id) for id in sorted(self._assembly.ids()))
        return [asset for asset in every if asset is not None and wanted(asset)]

    def _update(self, generator: Generator, inputs: Inputs, files: Mapping[str, FileEntry]) -> None:
        if generator.rule is not None:
            self._derive(generator.name, generator.rule, inputs)
            return
        wanted: dict[str, str] = {}
        for unit in [unit for unit in self._unfinished if unit.maker == generator.name]:
            known = self._assembly.get(unit)
            if known is not None:
                inputs.setdefault(unit.item, known.inputs)
        for item, digest in inputs.items():
            unit = Unit(generator.name, item)
            known = self._assembly.get(unit)
            if digest is None:
                self._unfinished.discard(unit)
                self._assembly.drop(unit)
            elif known is None or known.inputs != digest or not known.repeatable:
                kept = self._memo.get(unit, digest)
                if kept is None:
                    wanted[item] = digest
                else:
                    self._unfinished.discard(unit)
                    self._assembly.put(unit, kept)
        arguments = self._arguments(generator, wanted, files)
        if arguments:
            self._call(generator, arguments, wanted)

    def _derive(self, maker: str, rule: DerivingRule, inputs: Inputs) -> None:
        """Run a policy's rule. Looking up the output on disk would take as long."""
        for item, digest in inputs.items():
            unit = Unit(maker, item)
            known, asset = self._assembly.get(unit), self._assembly.asset(AssetId(item))
            if digest is None or asset is None:
                self._assembly.drop(unit)
            elif known is None or known.inputs != digest or known.diagnostics:  # with current positions
                self._assembly.put(unit, rule.output(asset, digest, self._registry))

    def _call(self, generator: Generator, arguments: dict[str, Argument], inputs: Mapping[str, str]) -> None:
        items = iter(arguments)

        def put(item: str, output: Output) -> None:
            unit = Unit(generator.name, item)
            self._assembly.put(unit, output)
            self._memo.note(unit, output)
            (self._unfinished.discard if output.repeatable else self._unfinished.add)(unit)

        def take(answer: CallOutput) -> None:
            item = next(items)
            put(item, output_of(answer, generator, inputs[item], item, self._registry))

        death = self._run.call(generator, list(arguments.values()), self.code_of(generator), take)
        rest = list(items)
        if death is not None and not rest:  # all were answered before it failed
            rest = list(arguments)[-1:]
        # An item that was not reached because an earlier one failed has no problem of its own.
        for item in rest:
            put(item, Output(inputs[item], (), (), () if death is None else (death,), repeatable=False))
            death = None

    def _arguments(
        self, generator: Generator, inputs: Mapping[str, str], files: Mapping[str, FileEntry]
    ) -> dict[str, Argument]:
        """Arguments for the generator, by item."""
        paths = {item: self.paths_of(generator, item, files) for item in inputs}
        items = [item for item in inputs if self._fits(generator, item, paths[item], inputs, files)]
        if generator.found.declaration.reads is Reads.ASSET:
            items = [item for item in items if self._assembly.asset(AssetId(item)) is not None]
        wanted = [path for item in items for path in paths[item]]
        contents = dict(zip(wanted, self._fetch(wanted), strict=True))
        arguments = self.arguments_of(generator, items, contents) if items else ()
        return dict(zip(items, arguments, strict=True))

    def _fits(
        self,
        generator: Generator,
        item: str,
        paths: list[str],
        inputs: Mapping[str, str],
        files: Mapping[str, FileEntry],
    ) -> bool:
        """Whether files are small enough for a generator; if not, a problem becomes its output."""
        size = sum(files[path].size for path in paths)
        if size <= MAX_INPUT_BYTES:
            return True
        self._assembly.put(
            Unit(generator.name, item), Output(inputs[item], (), (), (_too_large(generator, paths, size),))
        )
        return False


def _view(asset: Asset) -> AssetView:
    document = asset.document()
    return AssetView(asset.id, asset.type, document["payload"], document["addons"])


def _declares_nothing(path: str) -> Diagnostic:
    return file_problem(
        "GEN021",
        Position(path),
        what=f"{path} declares no generator",
        why="no function in it has a decorator such as `@for_each_file(...)`",
        fix="add the decorator; or, if other modules import it, start its name with `_`",
        severity=Severity.WARNING,
    )


def _too_large(generator: Generator, paths: list[str], size: int) -> Diagnostic:
    what = paths[0] if len(paths) == 1 else f"{len(paths)} files"
    return Diagnostic(
        code="GEN011",
        what=f"{generator.name} reads {what}, {size:,} bytes, more than {MAX_INPUT_BYTES:,}",
        why="a call receives all of its input at once",
        fix="split the input, or fix the pattern",
        subject=generator.name,
        at=Position(paths[0]) if len(paths) == 1 else generator.at,
    )
