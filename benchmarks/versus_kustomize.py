"""One object of SIZE (10,000) changed, until it is published: against `kubectl kustomize`.

Both read the same manifests of a hundred ConfigMaps each, and give each object a prefix and a label. Lehr
goes from the commit to the published incarnation: validated, stored durably, with its difference known.
Kustomize writes out all there is; here its cycle ends with that, before anything was compared or kept.

A tenth and a fifth of SIZE come first, so that one sees how both grow: what kustomize takes grows with the
square. It is given KUSTOMIZE_LIMIT seconds (300) for a build; where that is not enough, its figure is that
limit, and the line says `peer_at_least` and `times_faster_at_least`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from benchmarks import figures
from benchmarks.generate_cold import Publishing, git
from lehr.model.attempt import Publication

CHANGES = 20
PER_FILE = 100
PEER = "kubectl kustomize"

TYPE = textwrap.dedent("""
    name: kube.ConfigMap
    schema:
      type: object
      required: [metadata, data]
      additionalProperties: false
      properties:
        metadata:
          type: object
          additionalProperties: false
          properties:
            name: {type: string}
            labels: {type: object, additionalProperties: {type: string}}
        data: {type: object, additionalProperties: {type: string}}
""")
GENERATOR = textwrap.dedent("""
    from lehr.sdk.generator import asset, for_each_file

    @for_each_file("objects/*.yaml")
    def objects(file):
        for document in file.documents():
            name = "bench-" + document["metadata"]["name"]
            metadata = {"name": name, "labels": {"team": "bench"}}
            yield asset(name, "kube.ConfigMap", {"metadata": metadata, "data": document["data"]})
""")


def objects(number: int, version: int = 1) -> str:
    """A hundred ConfigMaps; each version of them changes the first alone."""
    texts = []
    for item in range(PER_FILE):
        value = version if item == 0 else 1
        lines = [f"  setting{line}: value-{line}-{number}-{item}-{value}" for line in range(13)]
        head = ["apiVersion: v1", "kind: ConfigMap", "metadata:", f"  name: object-{number}-{item}", "data:"]
        texts.append("\n".join([*head, *lines]) + "\n")
    return "---\n".join(texts)


def path(folder: Path, number: int) -> Path:
    """The file of a hundred objects."""
    return folder / "objects" / f"{number:04}.yaml"


def write(folder: Path, size: int) -> None:
    """A workspace that is a kustomization, too."""
    for name in ("objects", "generators", "types"):
        (folder / name).mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: bench\n")
    (folder / "types" / "configmap.yaml").write_text(TYPE)
    (folder / "generators" / "objects.py").write_text(GENERATOR)
    files = range(size // PER_FILE)
    for number in files:
        path(folder, number).write_text(objects(number))
    resources = [f"- {path(folder, number).relative_to(folder)}" for number in files]
    lines = ["namePrefix: bench-", "labels:", "- pairs: {team: bench}", "resources:", *resources]
    (folder / "kustomization.yaml").write_text("\n".join(lines) + "\n")
    git(folder, "init", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "all")


async def ours(folder: Path, state: Path, size: int) -> list[float]:
    """Seconds from each commit to its incarnation."""
    publishing = Publishing(folder, state)
    first = await publishing.refresh()
    assert first.publication is Publication.PUBLISHED, first.diagnostics[:3]
    seconds = []
    for change in range(CHANGES):
        number = change % (size // PER_FILE)
        path(folder, number).write_text(objects(number, change + 2))
        git(folder, "commit", "-am", f"change {change}")
        began = time.perf_counter()
        attempt = await publishing.refresh()
        seconds.append(time.perf_counter() - began)
        assert len(attempt.changed) == 1, f"{len(attempt.changed)} assets changed"
    await publishing.close()
    return seconds


def theirs(kubectl: str, folder: Path, size: int, limit: float) -> figures.Peer:
    """Milliseconds of a build, waited for no longer than `limit` seconds. One is enough: it builds all."""
    began = time.perf_counter()
    try:
        built = subprocess.run(
            [kubectl, "kustomize", str(folder)], check=True, capture_output=True, timeout=limit
        ).stdout
    except subprocess.TimeoutExpired:
        return figures.Peer(PEER, limit * 1000, at_least=True)
    seconds = time.perf_counter() - began
    assert built.count(b"\nkind: ConfigMap\n") == size, "kustomize has built something else"
    return figures.Peer(PEER, seconds * 1000)


def compare(kubectl: str, size: int, limit: float) -> None:
    """Print the figures for one size."""
    with tempfile.TemporaryDirectory() as name:
        folder, state = Path(name) / "intent", Path(name) / "state"
        write(folder, size)
        peer = theirs(kubectl, folder, size, limit)
        seconds = asyncio.run(ours(folder, state, size))
    for percent in (50, 99):
        value = figures.percentile(seconds, percent) * 1000
        faster = "times_faster_at_least" if peer.at_least else "times_faster"
        facts = {faster: round(peer.value / value, 1), "changes": CHANGES}
        figures.report(f"one_changed_p{percent}", value, "ms", size, peer=peer, **facts)


def main() -> None:
    """Print the figures."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        sys.exit("SKIPPED: there is no kubectl on the PATH, so there is nothing to compare with")
    size, limit = figures.size(10_000), float(os.environ.get("KUSTOMIZE_LIMIT", "300"))
    for part in (10, 5, 1):
        compare(kubectl, size // part, limit)


if __name__ == "__main__":
    main()
