"""Rebuilds outputs in force, to detect what isolation cannot prevent.

After an answer, a few randomly chosen inputs of one generator, and in time all of them, are passed to it
again in another interpreter: with another order of sets, objects at other addresses, at a later time, and
together with other inputs. A different output is an error from the next answer on, until the generator's code
changes: either output may be in force, so nothing is published based on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from lehr.base.chance import Chance
from lehr.base.diagnostics import Diagnostic, errors
from lehr.generate.engine.assembly import ALL, Assembly, Unit
from lehr.generate.engine.generators import Generators
from lehr.generate.engine.output_difference import difference
from lehr.generate.engine.records import output_of
from lehr.generate.engine.runs import Run
from lehr.generate.engine.schedule import Generator
from lehr.generate.outcome.output import Output
from lehr.generate.sandbox.authors import Answer
from lehr.generate.typing.problems import quoted
from lehr.model.types import Registry
from lehr.sdk.source import FileEntry

if TYPE_CHECKING:
    from lehr.generate.engine.memo import Memo  # does I/O, as its caller expects

MOST_ITEMS = 64
"""Number of inputs passed to a generator again after one answer."""

MOST_BYTES = 1 << 20
"""Total size of the files that are read again for it."""

MOST_ASSETS = 500
"""Size of the rebuilt outputs: comparing them delays an incoming commit by some milliseconds."""

_DOUBT = "doubt"  # maker, in the memo, of findings about a generator


class Sample(msgspec.Struct, frozen=True):
    """A sample of outputs to rebuild.

    Attributes:
        outputs: the outputs to compare, by item.
        paths: paths of the files that it needs.
    """

    generator: Generator
    outputs: dict[str, Output]
    paths: tuple[str, ...]


class Elsewhere(Protocol):
    """Calls generators again."""

    def ready(self) -> bool:
        """Whether they can be called now. Calling this prepares it."""
        ...

    @property
    def run(self) -> Run:
        """Calls them, and stops when there is newer work."""
        ...


class Verification:
    """Chooses samples, and remembers its findings.

    Args:
        files: files of the snapshot.
    """

    def __init__(
        self,
        generators: Generators,
        assembly: Assembly,
        registry: Registry,
        files: Mapping[str, FileEntry],
        elsewhere: Elsewhere,
        memo: Memo,
        chance: Chance,
    ) -> None:
        self._generators = generators
        self._assembly = assembly
        self._registry = registry
        self._files = files
        self._elsewhere = elsewhere
        self._memo = memo
        self._chance = chance
        self._left: dict[str, list[str]] = {}
        self._sample: Sample | None = None
        self._alone = True
        self._doubts: dict[str, Output] = {}

    def problems(self) -> list[Diagnostic]:
        """Findings against the generators with their current code."""
        return [item for known in self._generators.ordered for item in self._doubt_of(known).diagnostics]

    def _doubt_of(self, generator: Generator) -> Output:
        """Findings against a generator, as diagnostics of an output."""
        digest = self._generators.code_digest(generator)
        doubt = self._doubts.get(generator.name)
        if doubt is None or doubt.inputs != digest:
            doubt = self._memo.get(Unit(_DOUBT, generator.name), digest) or Output(digest)
            self._doubts[generator.name] = doubt
        return doubt

    def idle(self) -> Iterator[None]:
        """Work to do after each answer; `verify` may be called in between."""
        if self._sample is not None and not self._sample.paths:
            self.verify(())
            yield
        if self._sample is None:
            self._choose()

    def _choose(self) -> None:
        """Choose the sample to verify after the next answer."""
        first, self._alone = self._alone, False
        known = [item for item in self._generators.ordered if not self._doubt_of(item).diagnostics]
        if not first and known and self._elsewhere.ready():  # a worker may exist for one answer only
            self._sample = self._sample_of(known[int(self._chance.uniform(0, len(known) - 0.001))])

    def wanted(self) -> tuple[str, ...]:
        """Paths of the files whose contents `verify` needs."""
        sample = self._sample
        if sample is None:
            return ()
        units = {item: Unit(sample.generator.name, item) for item in sample.outputs}
        if any(self._assembly.get(units[item]) is not output for item, output in sample.outputs.items()):
            self._sample = None
            return ()
        return sample.paths

    def verify(self, contents: Sequence[bytes]) -> None:
        """Rebuild the sample, if the contents of its files are available, and compare."""
        sample, self._sample = self._sample, None
        if sample is None or len(contents) != len(sample.paths):
            return
        generator = sample.generator
        read = dict(zip(sample.paths, contents, strict=True))
        arguments = self._generators.arguments_of(generator, list(sample.outputs), read)
        answers: list[Answer] = []
        self._elsewhere.run.call(
            generator, arguments[::-1], self._generators.code_of(generator), answers.append
        )
        items = list(sample.outputs.items())[::-1]
        for (item, before), answer in zip(items, answers, strict=False):
            after = output_of(answer, generator, before.inputs, item, self._registry)
            found = difference(before, after) if after.repeatable else None
            if found is not None:
                self._doubt(generator, item, found)
                return

    def _sample_of(self, generator: Generator) -> Sample | None:
        left = self._left.get(generator.name) or list(self._assembly.items(generator.name))
        self._left[generator.name] = left
        outputs: dict[str, Output] = {}
        paths: list[str] = []
        size = assets = 0
        while left and len(outputs) < MOST_ITEMS:
            output = self._assembly.get(Unit(generator.name, left[-1]))
            if output is not None and output.repeatable and not errors(output.diagnostics):
                more = self._generators.paths_of(generator, left[-1], self._files)
                size += sum(self._files[path].size for path in more)
                assets += len(output.assets) + len(output.additions)
                fits = size <= MOST_BYTES and assets <= MOST_ASSETS
                if not fits and outputs:
                    break
                if not fits:  # it never does
                    left.pop()
                    break
                outputs[left[-1]] = output
                paths += more
            left.pop()
        return Sample(generator, outputs, tuple(paths)) if outputs else None

    def _doubt(self, generator: Generator, item: str, found: str) -> None:
        given = "all that it reads" if item == ALL else quoted(item)
        problem = Diagnostic(
            code="GEN037",
            what=f"{generator.name} does not make the same of the same input",
            why=f"it was called again with {given}: {found}",
            fix="derive nothing from the clock, chance, `id()`, `hash()` or the order of a set; "
            "nothing is published until its code has changed",
            subject=generator.name,
            at=generator.at,
        )
        digest = self._generators.code_digest(generator)
        doubt = Output(digest, diagnostics=(problem,))
        self._doubts[generator.name] = doubt
        self._memo.note(Unit(_DOUBT, generator.name), doubt, with_errors=True)
