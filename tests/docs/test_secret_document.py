"""The page about secrets: its commands run, its assets are valid, and its code does what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

from lehr.control.state_folder import default_state
from lehr.generate.typing.asset_files import read_assets
from lehr.model.secret import Secret
from lehr.wiring import registry

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/keep-secrets.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def lehr(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A call in `folder`, with a secret on standard input, and an editor that changes nothing."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEHR_")}
    return subprocess.run(
        [sys.executable, "-m", "lehr", *arguments],
        cwd=folder,
        env=environment | {"VISUAL": "true"},
        input="text",
        capture_output=True,
        text=True,
    )


def test_the_assets_are_valid_and_refer_to_secrets() -> None:
    made = read_assets("assets/shop.yaml", blocks("yaml")[0].encode(), "1", registry())
    assert not made.diagnostics
    found = [secret for asset in made.assets for _, secret in registry().secrets(asset)]
    assert found == [
        Secret("env:SHOP_API_TOKEN", "2026-11"),
        Secret("age:secrets/db.yaml.age#password"),
        Secret("file:/run/secrets/tls.key"),
    ]


def test_the_declared_type_takes_a_reference_and_no_value(tmp_path: Path) -> None:
    for name, text in (("lehr.yaml", "partition: shop\n"), ("types/account.yaml", blocks("yaml")[1])):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "assets").mkdir()
    for password, codes in (({"secret": "env:A"}, []), ("text", ["GEN016"])):
        asset = {"id": "a", "type": "shop.Account", "payload": {"password": password}}
        (tmp_path / "assets/a.yaml").write_text(yaml.safe_dump(asset))
        done = lehr(tmp_path, "validate", "-o", "json")
        assert re.findall(r'"code": "(\w+)"', done.stdout) == codes, done.stdout + done.stderr


def test_the_code_shows_no_secret(tmp_path: Path) -> None:
    use = (
        "\nimport asyncio\nfrom lehr.testing.plugins import FixedSecrets\n"
        "account = Account('ada', Secret('env:A'))\n"
        "asyncio.run(log_in(account, FixedSecrets({'env:A': 'canary'})))\n"
    )
    script = tmp_path / "example.py"
    script.write_text(blocks("python")[0] + use)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("ada [secret]\n", "")


def test_the_commands_run(tmp_path: Path) -> None:
    (tmp_path / "lehr.yaml").write_text("partition: shop\n")
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "lehr"
        done = lehr(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
    assert (default_state(tmp_path) / "age-identity.txt").exists()
    assert (tmp_path / "secrets/db.yaml.age").read_text().startswith("-----BEGIN AGE")
