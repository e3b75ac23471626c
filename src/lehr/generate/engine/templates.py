"""The templates that generators may render: code that is not Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from lehr.base.documents import MAX_BYTES
from lehr.generate.engine.schedule import Generator
from lehr.generate.outcome.globs import matcher
from lehr.sdk.source import FileEntry


class Templates:
    """Templates of the newest snapshot, by generator. Files that are too large are left out."""

    def __init__(self, fetch: Callable[[list[str]], Iterator[bytes]]) -> None:
        self._fetch = fetch
        self._ids: dict[str, dict[str, str]] = {}
        self._contents: dict[str, tuple[str, bytes]] = {}

    def update(
        self, generators: Iterable[Generator], files: Mapping[str, FileEntry], dirty: Iterable[str]
    ) -> set[str]:
        """Read the templates that have changed; returns the names of the generators that may render them."""
        before, self._ids = self._ids, {}
        for generator in generators:
            if pattern := generator.found.declaration.templates:
                matches, known = matcher(pattern), before.get(generator.name)
                if known is None or any(map(matches, dirty)):
                    paths = sorted(path for path in files if matches(path))
                    known = {p: files[p].content_id for p in paths if files[p].size <= MAX_BYTES}
                self._ids[generator.name] = known
        wanted = {path: id for ids in self._ids.values() for path, id in ids.items()}
        new = [path for path, id in wanted.items() if self._contents.get(path, ("",))[0] != id]
        read = {path: (wanted[path], content) for path, content in zip(new, self._fetch(new), strict=True)}
        self._contents = {path: read.get(path) or self._contents[path] for path in wanted}
        return {name for name, ids in self._ids.items() if ids != before.get(name)}

    def ids(self, generator: Generator) -> Mapping[str, str]:
        """Content ids of its templates, by path."""
        return self._ids.get(generator.name, {})

    def contents(self, generator: Generator) -> dict[str, bytes]:
        """Its templates, by path."""
        return {path: self._contents[path][1] for path in self.ids(generator)}
