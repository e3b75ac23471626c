"""The real AWS provider, and moto on loopback in place of AWS: for tests, which are skipped without them."""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import importlib.util
import os
import platform
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.ports import free_ports

SERVICES = ("ec2", "iam", "s3", "sqs", "ssm", "sts")
_MIRRORS = (
    "~/.terraform.d/plugins",
    "~/.local/share/terraform/plugins",
    "/opt",
    "/opt/*",
    "/opt/*/*",
    "/usr/lib/terraform/plugins",
    "/usr/share/terraform/plugins",
    "/usr/local/share/terraform/plugins",
    "/usr/local/lib/terraform/plugins",
)
_MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_WITHIN_A_MIRROR = f"registry.terraform.io/hashicorp/aws/*/linux_{_MACHINE}/terraform-provider-aws_v*"


@functools.cache
def found_provider() -> Path | None:
    """The provider, from AWS_PROVIDER or a mirror on this machine as `terraform` has them."""
    given = os.environ.get("AWS_PROVIDER")
    if given:
        return Path(given)
    configuration = Path(os.environ.get("TF_CLI_CONFIG_FILE", "~/.terraformrc")).expanduser()
    text = configuration.read_text() if configuration.is_file() else ""
    configured = re.findall(r'filesystem_mirror\s*\{[^}]*path\s*=\s*"([^"]+)"', text)
    for mirror in (*configured, *_MIRRORS):
        if programs := sorted(glob.glob(f"{Path(mirror).expanduser()}/{_WITHIN_A_MIRROR}")):
            return Path(programs[-1])
    return None


def provider_program() -> Path:
    """As `found_provider`. Without one, the test that asks is skipped."""
    found = found_provider()
    if found is None:
        pytest.skip(
            "NO AWS PROVIDER: nothing real was tested here; set AWS_PROVIDER to terraform-provider-aws_v*"
        )
    return found


def moto_command() -> list[str]:
    """The server of moto, from MOTO_SERVER or this environment. Without one, the test is skipped."""
    if given := os.environ.get("MOTO_SERVER"):
        return [given]
    if importlib.util.find_spec("moto") is None:
        pytest.skip("NO MOTO: nothing real was tested here; `make dev-environment` installs it")
    return [sys.executable, "-m", "moto.server"]


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """An empty AWS; returns its address."""
    port = free_ports(1)
    server = subprocess.Popen(
        [*moto_command(), "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"{address}/moto-api/", timeout=5).close()
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                assert server.poll() is None, "moto has ended"
                assert monotonic() < deadline, "moto does not answer"
                sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()


def sha256(program: Path) -> str:
    """As `sha256sum` prints it."""
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def at_moto(address: str, indent: str) -> str:
    """Lines of the provider's configuration that lead it to moto, for YAML."""
    endpoints = ", ".join(f'{service}: "{address}"' for service in SERVICES)
    lines = (
        "skip_credentials_validation: true",
        "skip_metadata_api_check: true",
        "skip_requesting_account_id: true",
        "s3_use_path_style: true",
        f"endpoints: [{{{endpoints}}}]",
    )
    return "".join(f"{indent}{line}\n" for line in lines)


def hcl_at_moto(address: str) -> str:
    """The same for Terraform."""
    endpoints = "".join(f'    {service} = "{address}"\n' for service in SERVICES)
    return (
        "  skip_credentials_validation = true\n  skip_metadata_api_check = true\n"
        f"  skip_requesting_account_id = true\n  endpoints {{\n{endpoints}  }}\n"
    )
