"""The bench against Kubernetes runs to its end, leaves nothing behind, and touches nothing of others.

What answers here is a stand-in: that the bench runs is all that is shown, and no figure of it means anything.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import kubernetes
from benchmarks.versus_kubernetes import NAMESPACE
from tests.kubernetes_stand_in import TOKEN, VERSION, Cluster, serving

FIGURES = [
    "list_all",
    "list_in_pages_of_500",
    "write_to_watch_p50",
    "write_to_watch_p99",
    "all_watchers_have_all",
]


def bench(**environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.versus_kubernetes", "600"],
        capture_output=True,
        text=True,
        timeout=150,
        env=inherited | environment,
    )


def test_both_sides_are_measured_and_what_was_made_is_removed() -> None:
    cluster = Cluster("default")
    with serving(cluster) as url:
        done = bench(KUBERNETES_API=url, KUBERNETES_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["figure"] for line in lines] == FIGURES
    for line in lines:
        assert line["peer"] == f"API server {VERSION}"  # and no word of Kubernetes that it is not
        assert line["ratio"] > 0
        assert line["peer_list_bytes"] > 500 * 600
    assert list(cluster.namespaces) == ["default"]
    written = [path for method, path in cluster.requests if method != "GET"]
    others = [path for path in written if f"/{NAMESPACE}" not in path]
    assert others == ["/api/v1/namespaces"]


def test_a_namespace_that_it_has_not_made_is_left_alone() -> None:
    cluster = Cluster(NAMESPACE)
    with serving(cluster) as url:
        done = bench(KUBERNETES_API=url, KUBERNETES_TOKEN=TOKEN)
    assert done.returncode == 1
    assert f"kubectl delete namespace {NAMESPACE}" in done.stderr
    assert NAMESPACE in cluster.namespaces
    assert [method for method, _path in cluster.requests] == ["GET", "POST"]
    assert done.stdout == ""


def test_without_an_address_it_says_loudly_that_nothing_was_measured_and_what_to_set() -> None:
    done = bench()
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("SKIPPED: ")
    for name in ("NOTHING WAS MEASURED", "KUBERNETES_API", "KUBERNETES_TOKEN", "KUBECONFIG", NAMESPACE):
        assert name in done.stderr


def test_the_namespace_goes_also_when_the_bench_fails_but_never_another_of_its_name() -> None:
    cluster = Cluster()
    with serving(cluster) as url:
        address = kubernetes.address_from({"KUBERNETES_API": url, "KUBERNETES_TOKEN": TOKEN})
        assert address is not None
        api = kubernetes.Api(address)
        with pytest.raises(RuntimeError, match="half way"), kubernetes.own_namespace(api, "mine"):
            raise RuntimeError("half way")
        assert cluster.namespaces == {}
        with pytest.raises(kubernetes.RefusedError, match="409"):
            replaced_meanwhile(cluster, api)
        assert list(cluster.namespaces) == ["mine"]
        api.close()


def replaced_meanwhile(cluster: Cluster, api: kubernetes.Api) -> None:
    with kubernetes.own_namespace(api, "mine"):
        cluster.delete_namespace("mine", {})
        cluster.create_namespace({"metadata": {"name": "mine"}})


def kubeconfig(folder: Path, user: dict[str, Any], cluster: dict[str, Any]) -> dict[str, str]:
    contexts = [{"name": "here", "context": {"cluster": "one", "user": "me"}}]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": contexts,
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "me", "user": user}],
    }
    path = folder / "config"
    path.write_text(json.dumps(config))
    return {"PATH": os.environ["PATH"], "KUBECONFIG": str(path)}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on the PATH")
def test_a_kubeconfig_says_where_and_as_whom(tmp_path: Path) -> None:
    where = {"server": "http://127.0.0.1:6443"}
    found = kubernetes.address_from(kubeconfig(tmp_path, {"token": "abc"}, where))
    assert found == ("127.0.0.1", 6443, None, "abc")
    logs_in = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "log-in"}}
    with pytest.raises(SystemExit, match="KUBERNETES_TOKEN"):
        kubernetes.address_from(kubeconfig(tmp_path, logs_in, where))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on the PATH")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl on the PATH")
def test_certificates_of_a_kubeconfig_are_used(tmp_path: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=me"]
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    subprocess.run([*made, *files], check=True, capture_output=True, timeout=150)
    cert, key = (base64.b64encode((tmp_path / name).read_bytes()).decode() for name in ("cert", "key"))
    user = {"client-certificate-data": cert, "client-key-data": key}
    where = {"server": "https://127.0.0.1:6443", "certificate-authority-data": cert}
    found = kubernetes.address_from(kubeconfig(tmp_path, user, where))
    assert found is not None
    assert found.tls is not None
    [trusted] = found.tls.get_ca_certs()
    assert "me" in str(trusted["subject"])
