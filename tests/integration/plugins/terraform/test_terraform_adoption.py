"""`lehr adopt --from-tfstate`, from the command line, over a provider that is a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.terraform import fake
from tests.terraform.aws import sha256
from tests.terraform.fake_store import Store

SHOWN = {
    "id": "lamp",
    "name": "lamp",
    "text": "a lamp",
    "size": 3,
    "enabled": None,
    "tags": None,
    "labels": None,
    "protected": None,
    "former": None,
    "class": "standard",
    "etag": "1",
}


def workspace(folder: Path) -> None:
    Store(folder / "store").put("fake_given", "lamp", SHOWN)
    instance = {"schema_version": 1, "attributes": {**SHOWN, "size": 1, "force": None}}
    kept = {"mode": "managed", "type": "fake_given", "name": "it", "instances": [instance]}
    (folder / "terraform.tfstate").write_text(json.dumps({"version": 4, "resources": [kept]}))
    program = fake.binary(folder)
    asset = {
        "id": "cloud/fake",
        "type": "lehr.TerraformProvider",
        "payload": {
            "path": program.name,
            "sha256": sha256(program),
            "config": {"store": str(folder / "store")},
        },
    }
    (folder / "assets").mkdir()
    (folder / "assets" / "fake.json").write_text(json.dumps(asset))
    (folder / "lehr.yaml").write_text("partition: shop\n")


def adopt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEHR_")}
    return subprocess.run(
        [sys.executable, "-m", "lehr", "adopt", *words],
        cwd=folder,
        env=environment | {"XDG_STATE_HOME": str(folder / "states")},
        capture_output=True,
        text=True,
    )


def test_a_state_file_is_drafted_as_production_is_now(tmp_path: Path) -> None:
    workspace(tmp_path)
    done = adopt(tmp_path, "--from-tfstate", "terraform.tfstate", "assets/fake.json", "-o", "json")
    assert done.returncode == 0, done.stderr
    [draft] = json.loads(done.stdout)
    assert draft["obstacle"] == ""
    assert draft["id"] == "fake_given/it"
    assert draft["payload"] == {
        "provider": "cloud/fake",
        "type": "fake_given",
        "config": {"name": "lamp", "size": 3, "text": "a lamp"},  # 3, which the state file does not know
        "import": "lamp",
    }


def test_the_file_of_the_provider_has_to_be_named(tmp_path: Path) -> None:
    workspace(tmp_path)
    done = adopt(tmp_path, "--from-tfstate", "terraform.tfstate", "lehr.TerraformResource")
    assert done.returncode == 2
    assert "name only the file of the lehr.TerraformProvider" in done.stderr
    assert adopt(tmp_path, "lehr.File").returncode == 2
