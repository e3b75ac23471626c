"""A workspace as big as one likes: manifests that each name a hundred places, and one generator."""

from __future__ import annotations

import textwrap
from pathlib import Path

PLACES = 100
"""Assets that come of each manifest."""

_TOGETHER = 100
"""Manifests in a folder, as people keep them: git writes a folder anew for each change in it, and whoever
reads the change reads all its entries. With 10,000 in one folder, that alone takes 40 ms."""

_GENERATOR = textwrap.dedent("""
    from lehr.sdk.generator import asset, for_each_file

    @for_each_file("manifests/*/*.yaml")
    def configurations(file):
        service = file.yaml()
        for place in service["places"]:
            content = "\\n".join(f"{key} = {place}/{value}" for key, value in service["settings"].items())
            path = f"etc/{service['name']}/{place}"
            yield asset(f"{service['name']}/{place}", "lehr.File", {"path": path, "content": content})
""")


def manifest(number: int, version: int = 1) -> str:
    """About 2 KB of YAML; each version of it changes all of its assets, of about 600 bytes each."""
    settings = {f"setting{item}": f"value-{item}-{number}-{version}" for item in range(13)}
    lines = [f"name: service{number}", "settings:"]
    lines += [f"  {key}: {value}" for key, value in settings.items()]
    lines += ["places:", *(f"  - cluster-{place:03}" for place in range(PLACES))]
    return "\n".join(lines) + "\n"


def write(folder: Path, size: int) -> None:
    """A workspace of `size` assets."""
    (folder / "generators").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: bench\n")
    (folder / "generators" / "configurations.py").write_text(_GENERATOR)
    for number in range(size // PLACES):
        file = path(folder, number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(manifest(number))


def path(folder: Path, number: int) -> Path:
    """The file of a manifest."""
    return folder / "manifests" / f"{number // _TOGETHER:04}" / f"{number:06}.yaml"
