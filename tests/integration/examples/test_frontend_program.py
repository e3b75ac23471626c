"""The Shakespeare example's frontend, without a database: health, metrics, faults, and leaving."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_ports

FRONTEND = Path(__file__).resolve().parents[3] / "examples" / "shakespeare" / "app" / "frontend.py"
PATIENCE = 20.0


@contextmanager
def frontend(version: str, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_ports(1)
    command = [sys.executable, str(FRONTEND), "--version", version, "--port", str(port), *options]
    with subprocess.Popen([*command, "--database", "postgresql://nobody@127.0.0.1:1/none"]) as process:
        try:
            deadline = time.monotonic() + PATIENCE
            while get(port, "/healthz")[0] != 200:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield process, port
        finally:
            process.kill()


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body; 0 if there is no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except ConnectionError:
        return 0, ""
    finally:
        connection.close()


def test_without_a_database_it_is_healthy_and_says_that_it_cannot_answer() -> None:
    with frontend("v1") as (_, port):
        assert get(port, "/version") == (200, "v1\n")
        status, body = get(port, "/")
        assert status == 503
        assert "the database does not answer" in body
        assert get(port, "/healthz")[0] == 200


def test_metrics_count_requests_errors_and_their_time() -> None:
    with frontend("v2") as (_, port):
        for _ in range(3):
            get(port, "/")
        text = get(port, "/metrics")[1]
    assert 'frontend_requests_total{version="v2",code="503"} 3\n' in text
    assert 'frontend_errors_total{version="v2"} 3\n' in text
    assert 'frontend_request_seconds_bucket{version="v2",le="+Inf"} 3\n' in text
    assert 'frontend_request_seconds_count{version="v2"} 3\n' in text


def test_of_the_faulty_version_three_of_ten_answers_are_errors() -> None:
    with frontend("v3") as (_, port):
        found = Counter(get(port, "/")[0] for _ in range(300))
    assert found.keys() == {500, 503}
    assert 45 <= found[500] <= 135


def test_leaving_it_fails_its_health_check_first_and_answers_what_still_comes() -> None:
    with frontend("v1", "--drain-seconds", "1.5") as (process, port):
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        kept.request("GET", "/version")
        assert kept.getresponse().read() == b"v1\n"
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while get(port, "/healthz")[0] != 503:
            assert time.monotonic() < deadline
        kept.request("GET", "/version")
        answer = kept.getresponse()
        assert (answer.read(), answer.getheader("Connection")) == (b"v1\n", "close")
        assert process.wait(PATIENCE) == 0
        assert get(port, "/healthz")[0] == 0
        kept.close()
