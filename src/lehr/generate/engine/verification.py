"""Rebuilds outputs in force, to detect what isolation cannot prevent.

After an answer, a few inputs of one generator, and in time all inputs of all generators, are passed to it
again in another interpreter: with another order of sets, objects at other addresses, at a later time, and
together with other inputs. A different output is an error from the next answer on, until the generator's code
changes: either output may be in force, so nothing is published based on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from lehr.base.chance import Chance
from lehr.base.diagnostics import Diagnostic, errors, in_order
from lehr.base.digest import canonical
from lehr.base.pointers import pointer
from lehr.generate.engine.assembly import ALL, Assembly, Unit
from lehr.generate.engine.generators import Generators
from lehr.generate.engine.records import output_of
from lehr.generate.engine.runs import Run
from lehr.generate.engine.schedule import Generator
from lehr.generate.outcome.output import Addition, Output
from lehr.generate.sandbox.authors import CallOutput
from lehr.generate.typing.problems import quoted
from lehr.model.asset import Asset
from lehr.model.types import Registry
from lehr.sdk.source import FileEntry

if TYPE_CHECKING:
    from lehr.generate.engine.memo import Memo


MOST_ITEMS = 64
"""Number of inputs passed to a generator again after one answer."""

MOST_BYTES = 1 << 20
"""Total size of the files that are read again to verify them."""

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


class SecondCaller(Protocol):
    """Calls generators again."""

    def ready(self) -> bool:
        """Whether they can be called now. Calling this prepares them."""
        ...

    @property
    def run(self) -> Run:
        """Calls them, and stops when there is newer work."""
        ...


class Verification:
    """Chooses samples, and remembers its findings.

    Args:
        files: files of the snapshot.
        chance: chooses the generator to begin with, so that short-lived workers do not all verify the same.
    """

    def __init__(
        self,
        generators: Generators,
        assembly: Assembly,
        registry: Registry,
        files: Mapping[str, FileEntry],
        elsewhere: SecondCaller,
        memo: Memo,
        chance: Chance,
    ) -> None:
        self._generators = generators
        self._assembly = assembly
        self._registry = registry
        self._files = files
        self._elsewhere = elsewhere
        self._memo = memo
        self._turn = int(chance.uniform(0, 1 << 20))
        self._left: dict[str, list[str]] = {}
        self._sample: Sample | None = None
        self._alone = True
        self._doubts: dict[str, Output] = {}

    def problems(self) -> list[Diagnostic]:
        """Findings against the generators with their current code."""
        return [item for known in self._generators.ordered for item in self._findings_of(known).diagnostics]

    def _findings_of(self, generator: Generator) -> Output:
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
        known = [item for item in self._generators.ordered if not self._findings_of(item).diagnostics]
        if not first and known and self._elsewhere.ready():  # a worker may exist for one answer only
            self._sample = self._sample_of(known[self._turn % len(known)])
            self._turn += 1

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
        answers: list[CallOutput] = []
        self._elsewhere.run.call(
            generator, arguments[::-1], self._generators.code_of(generator), answers.append
        )
        items = list(sample.outputs.items())[::-1]
        for (item, before), answer in zip(items, answers, strict=False):
            after = output_of(answer, generator, before.inputs, item, self._registry)
            found = difference(before, after) if after.repeatable else None
            if found is not None:
                self._record_finding(generator, item, found)
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

    def _record_finding(self, generator: Generator, item: str, found: str) -> None:
        given = "all of its input" if item == ALL else quoted(item)
        problem = Diagnostic(
            code="GEN037",
            what=f"{generator.name} gave different results for the same input",
            why=f"on another call with {given}: {found}",
            fix="derive nothing from the clock, chance, `id()`, `hash()` or the order of a set; "
            "nothing is published until its code has changed",
            subject=generator.name,
            at=generator.at,
        )
        digest = self._generators.code_digest(generator)
        doubt = Output(digest, diagnostics=(problem,))
        self._doubts[generator.name] = doubt
        self._memo.note(Unit(_DOUBT, generator.name), doubt, with_errors=True)


# --- finds the first difference between two outputs of the same input ---------

_LONGEST = 60
_MISSING = object()

K = TypeVar("K")
V = TypeVar("V")


def difference(before: Output, after: Output) -> str | None:
    """The first difference, in words; None if they are equal. The order of yielded items does not count."""
    return next(_differences(before, after), None)


def _differences(before: Output, after: Output) -> Iterator[str]:
    failed = errors(after.diagnostics)
    if failed and not errors(before.diagnostics):
        yield f"it failed: {failed[0].what}; {failed[0].why}"
    for id, one, other in _pairs(_assets(before), _assets(after)):
        if one is None or other is None:
            yield f"{quoted(id)} was yielded only one of the two times"
        elif one.digest != other.digest:
            yield f"of {quoted(id)}, {_field(one.document(), other.document())}"
        elif one != other:
            yield f"{quoted(id)} comes from a different line"
    for (id, addon), first, second in _pairs(_additions(before), _additions(after)):
        if first is None or second is None:
            yield f"{addon} was put on {quoted(id)} only one of the two times"
        elif _value(first) != _value(second):
            yield f"of {addon} on {quoted(id)}, {_field(_value(first), _value(second))}"
    if _problems(before) != _problems(after):
        yield "it reports different problems"


def _assets(output: Output) -> dict[str, Asset]:
    return {asset.id: asset for asset in output.assets}


def _additions(output: Output) -> dict[tuple[str, str], Addition]:
    return {(item.id, item.addon): item for item in output.additions}


def _problems(output: Output) -> list[Diagnostic]:
    return in_order(sorted(output.diagnostics, key=lambda item: item.what))


def _value(addition: Addition) -> Any:
    return msgspec.json.decode(canonical(addition.value))


def _pairs(one: Mapping[K, V], other: Mapping[K, V]) -> Iterable[tuple[K, V | None, V | None]]:
    both = dict.fromkeys((*one, *other))
    return ((key, one.get(key), other.get(key)) for key in both)


def _field(one: Any, other: Any) -> str:
    """The first field that differs, with both values. `one` and `other` are plain data, and differ."""
    path: list[str | int] = []
    while True:
        inner = _inner(one, other)
        if inner is None:
            return f"{pointer(path) or 'the value'} is {_shown(one)} one time, and {_shown(other)} the other"
        key, one, other = inner
        path.append(key)


def _inner(one: Any, other: Any) -> tuple[str | int, Any, Any] | None:
    pairs: Iterable[tuple[str | int, Any, Any]] = ()
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        pairs = ((key, one.get(key, _MISSING), other.get(key, _MISSING)) for key in keys)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = ((index, *both) for index, both in enumerate(zip(one, other, strict=True)))
    return next((pair for pair in pairs if pair[1] is not pair[2] and pair[1] != pair[2]), None)


def _shown(value: Any) -> str:
    text = "missing" if value is _MISSING else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
