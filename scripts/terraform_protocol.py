"""Generates what Lehr needs of Terraform's plugin protocol, from `provider.proto`.

    python scripts/terraform_protocol.py [FOLDER]

FOLDER is where it is written; by default, next to the definition.
"""

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

HERE = Path(__file__).parents[1] / "src/lehr/plugins/terraform/wire"


def generate(folder: Path) -> None:
    """Write the descriptor set `provider.binpb` and its messages' types, `messages.pyi`, to `folder`."""
    with tempfile.TemporaryDirectory() as scratch:
        code = protoc.main(
            [
                "protoc",
                f"-I{HERE}",
                f"--descriptor_set_out={folder / 'provider.binpb'}",
                f"--pyi_out={scratch}",
                str(HERE / "provider.proto"),
            ]
        )
        if code:
            raise SystemExit(code)
        (folder / "messages.pyi").write_bytes((Path(scratch) / "provider_pb2.pyi").read_bytes())


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
