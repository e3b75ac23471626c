"""Makes the screenshots of the docs: `.venv/bin/python scripts/screenshots.py`. Needs chromium and git."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from lehr.control.http_servers import token_for
from lehr.http.access import new_ticket

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
LEHR = (sys.executable, "-m", "lehr")
SIZES = {
    "overview": ("", 820),
    "asset": ("/assets/notes/n1", 900),
    "diff": ("/diff/notes/n1", 480),
    "graph": ("/graph/berlin/page?hops=2", 860),
    "rollout": ("/rollouts/page-waves", 760),
    "forecast": ("/forecast/page-waves", 900),
}
WIDTH = 1200

PAGE = """\
id: {city}/page
type: lehr.File
payload: {{path: production/{city}.html, content: "version 1"}}
addons:
  lehr.Labels: {{labels: {{cluster: {city}}}}}
  lehr.DependsOn: {{assets: [shared/style, {city}/texts]}}
"""
SHARED = """\
id: {id}
type: lehr.File
payload: {{path: "production/{name}", content: ""}}
"""
NOTE = """\
id: notes/n{number}
type: lehr.File
payload: {{path: production/n{number}.txt, content: "first note"}}
"""
POLICY = """\
id: page-waves
type: lehr.RolloutPolicy
payload:
  select: {ids: ["*/page"]}
  unit: cluster
  target_selection:
    waves:
      - {units: 1, soak_seconds: 600}
      - {}
"""
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")


def run(*command: str, folder: Path) -> None:
    """Run a command, which has to succeed."""
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)


def commit(folder: Path, subject: str) -> None:
    """Commit everything."""
    who = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    run("git", "add", "-A", folder=folder)
    run("git", *who, "commit", "-qm", subject, folder=folder)


def fill(shop: Path) -> None:
    """Files that are served, before anything waits."""
    for file in (shop / "assets").iterdir():
        file.unlink()
    (shop / "assets/pages.yaml").write_text(
        "---\n".join(PAGE.format(city=city) for city in ("berlin", "london", "paris"))
    )
    shared = ("shared/style", *(f"{city}/texts" for city in ("berlin", "london", "paris")))
    (shop / "assets/shared.yaml").write_text(
        "---\n".join(SHARED.format(id=id, name=id.replace("/", "-")) for id in shared)
    )
    (shop / "assets/notes.yaml").write_text("---\n".join(NOTE.format(number=n) for n in range(1, 6)))
    commit(shop, "Serve three pages")


def hold(shop: Path) -> None:
    """A rollout in its first wave, and files that are frozen."""
    pages, notes = shop / "assets/pages.yaml", shop / "assets/notes.yaml"
    run(*LEHR, "sync", folder=shop)
    (shop / "assets/waves.yaml").write_text(POLICY)
    commit(shop, "Roll pages out in waves")
    run(*LEHR, "sync", folder=shop)
    pages.write_text(pages.read_text().replace("version 1", "version 2"))
    commit(shop, "Serve version 2")
    run(*LEHR, "sync", folder=shop)
    run(*LEHR, "freeze", "notes/*", "--reason", "market day", "--for", "2h", folder=shop)
    notes.write_text(notes.read_text().replace("first", "second"))
    commit(shop, "Write the notes again")
    run(*LEHR, "sync", folder=shop)
    time.sleep(3)


@contextlib.contextmanager
def serving(shop: Path) -> Iterator[str]:
    """The address of a run that serves the page."""
    command = [*LEHR, "run", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=shop, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if found := re.search(r"http://[\d.:]+", line):
                    yield found[0]
                    break
        finally:
            process.terminate()
            process.wait(timeout=30)


@contextlib.contextmanager
def browser(address: str) -> Iterator[Page]:
    """A page of a browser that the server at `address` admits."""
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        context = opened.new_context()
        ticket = new_ticket(token_for(address), time.time())
        context.request.get(f"{address}/sign-in", params={"ticket": ticket})
        yield context.new_page()
        opened.close()


def main() -> None:
    """Write all screenshots."""
    if shutil.which("chromium") is None:
        sys.exit("chromium is not in PATH")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        shop = Path(folder, "shop")
        run(*LEHR, "init", "shop", folder=Path(folder))
        fill(shop)
        with serving(shop) as address:
            hold(shop)
            with browser(address) as page:
                for name, (path, height) in SIZES.items():
                    target = IMAGES / f"{name}.png"
                    page.set_viewport_size({"width": WIDTH, "height": height})
                    page.goto(f"{address}/p/shop{path}")
                    page.screenshot(path=target)
                    print(target.relative_to(IMAGES.parents[1]))


if __name__ == "__main__":
    main()
