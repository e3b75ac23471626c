"""Generates the descriptor sets and type stubs of the protocols that plugins speak, from their definitions.

    python scripts/protocols.py [FOLDER]

FOLDER is where they are written; by default, each next to its definition, which examples then get.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

_PLUGINS = Path(__file__).parents[1] / "src/lehr/plugins"
_EXAMPLES = Path(__file__).parents[1] / "examples"
COPIES = (_EXAMPLES / "plugin-node/lehr/plugin.proto", _EXAMPLES / "plugin-go/lehrplugin/v1/plugin.proto")
"""Those of the protocol of plugins, in folders that people copy."""

DEFINITIONS = (_PLUGINS / "remote/plugin.proto", _PLUGINS / "terraform/wire/provider.proto")


def generate(definition: Path, folder: Path) -> None:
    """Write the descriptor set `NAME.binpb` and its messages' types, `messages.pyi`, to `folder`."""
    with tempfile.TemporaryDirectory() as scratch:
        code = protoc.main(
            [
                "protoc",
                f"-I{definition.parent}",
                f"--descriptor_set_out={folder / definition.with_suffix('.binpb').name}",
                f"--pyi_out={scratch}",
                str(definition),
            ]
        )
        if code:
            raise SystemExit(code)
        (folder / "messages.pyi").write_bytes((Path(scratch) / f"{definition.stem}_pb2.pyi").read_bytes())


if __name__ == "__main__":
    for _definition in DEFINITIONS:
        _folder = Path(sys.argv[1]) / _definition.parent.name if len(sys.argv) > 1 else _definition.parent
        _folder.mkdir(parents=True, exist_ok=True)
        generate(_definition, _folder)
    if len(sys.argv) == 1:
        for _copy in COPIES:
            shutil.copyfile(DEFINITIONS[0], _copy)
