"""Rollouts whose canary analysis asks a real Prometheus: a bad version, an outage, no traffic."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.prometheus import Prometheus

pytestmark = pytest.mark.timeout(180)

CLUSTERS = ("berlin", "london", "paris")
_SECONDS = 80.0
_REQUESTS = 20  # of each cluster, every tenth of a second
_BAD, _GOOD = 0.3, 0.01
_SELF = ("-c", "import sys; from lehr.cli.main import main; sys.exit(main())")


class Traffic:
    """Counts requests to the clusters, and serves the counts. A page with the word "bad" makes many fail.

    Attributes:
        flows: whether there are requests.
    """

    def __init__(self, production: Path) -> None:
        self.flows = True
        self._production = production
        self._counts = {name: [0, 0] for name in CLUSTERS}
        self._ended = threading.Event()
        counts = self._counts

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                requests, errors = counts[self.path.removeprefix("/")]
                body = f"requests_total {requests}\nerrors_total {errors}\n".encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Say nothing about single requests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._threads = [
            threading.Thread(target=self._count),
            threading.Thread(target=self._server.serve_forever),
        ]
        for thread in self._threads:
            thread.start()

    def _count(self) -> None:
        chance = random.Random(0)
        while not self._ended.wait(0.1):
            for name, counts in self._counts.items():
                page = self._production / f"{name}.html"
                rate = _BAD if page.exists() and "bad" in page.read_text() else _GOOD
                if self.flows:
                    counts[1] += sum(chance.random() < rate for _ in range(_REQUESTS))
                    counts[0] += _REQUESTS

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(20)


class Shop:
    """A workspace with a page in each cluster and a rollout policy, a `lehr run`, and a Prometheus."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shop"
        (self.folder / "assets").mkdir(parents=True)
        self.traffic = Traffic(self.folder / "production")
        self._run: subprocess.Popen[bytes] | None = None
        self._log = folder / "run.log"
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("LEHR_", "GIT_"))
        } | {"NO_COLOR": "1", "COLUMNS": "200", "LEHR_STATE": str(folder / "state")}
        try:
            scrapes = [
                {
                    "job_name": name,
                    "metrics_path": f"/{name}",
                    "static_configs": [
                        {"targets": [f"127.0.0.1:{self.traffic.port}"], "labels": {"cluster": name}}
                    ],
                }
                for name in CLUSTERS
            ]
            settings = {
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                "scrape_configs": scrapes,
            }
            (folder / "prometheus.yml").write_text(json.dumps(settings))
            self.prometheus = Prometheus(folder)
            self._metrics = folder / "metrics.yaml"
            source = {"type": "prometheus", "address": self.prometheus.address, "timeout": 2}
            self._metrics.write_text(json.dumps({"sources": {"prometheus": source}}))
            self.prometheus.start()
        except BaseException:
            self.close()
            raise

    def begin(self, deadline: float = 3600.0) -> None:
        """Start `lehr run`, with version 1 everywhere and a policy in force."""
        judge = {"minimum_requests": 400, "minimum_seconds": 4, "warmup_seconds": 2, "negligible": 0.04}
        counters = {name: f'{name}_total{{cluster="${{unit}}"}}' for name in ("requests", "errors")}
        up = {"source": "prometheus", "query": 'min(up{cluster="${unit}"})', "at_least": 1, "delay": 1}
        validation = {
            "look_every": 1,
            "deadline": deadline,
            "metrics": {"up": up},
            "canary": {"source": "prometheus", "counters": counters, "judge": judge},
        }
        payload = {
            "select": {"types": ["lehr.File"]},
            "unit": "cluster",
            "target_selection": {"waves": [{"units": 1}, {}]},
            "validation": validation,
        }
        asset = {"id": "waves", "type": "lehr.RolloutPolicy", "payload": payload}
        (self.folder / "lehr.yaml").write_text("partition: shop\n")
        (self.folder / "assets" / "waves.json").write_text(json.dumps(asset))
        self.publish("version 1")
        with self._log.open("ab") as log:
            command = [sys.executable, *_SELF, "run", "--metrics", str(self._metrics)]
            self._run = subprocess.Popen(
                command, cwd=self.folder, env=self._environment, stdout=log, stderr=log
            )
        self.until("version 1 is there", lambda: self.pages() == ["version 1"] * 3)
        self.until("the policy is in force", lambda: "newest content" in self.show())

    def publish(self, content: str) -> None:
        """Give all clusters another page."""
        pages = [
            {
                "id": f"{name}/page",
                "type": "lehr.File",
                "payload": {"path": f"production/{name}.html", "content": f"{content}\n"},
                "addons": {"lehr.Labels": {"labels": {"cluster": name}}},
            }
            for name in CLUSTERS
        ]
        (self.folder / "assets" / "pages.yaml").write_text("\n---\n".join(map(json.dumps, pages)) + "\n")

    def pages(self) -> list[str]:
        """The page of each cluster."""
        found = [self.folder / "production" / f"{name}.html" for name in CLUSTERS]
        return [page.read_text().strip() for page in found if page.exists()]

    def show(self) -> str:
        """What `lehr rollout show` prints."""
        return self.lehr("rollout", "show")

    def lehr(self, *arguments: str) -> str:
        """Run a command; returns what it printed."""
        done = subprocess.run(
            [sys.executable, *_SELF, *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout + done.stderr

    def facts(self) -> list[dict[str, Any]]:
        """What happened in the newest rollout, oldest first."""
        found = json.loads(self.lehr("rollout", "history", "--all", "-o", "json"))
        return [item["fact"] for item in reversed(found) if item["rollout"] == found[0]["rollout"]]

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + _SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"not in time: {what}\n{self.show()}\n{self._log.read_text()}"
            time.sleep(0.2)

    def close(self) -> None:
        if self._run is not None:
            self._run.terminate()
            self._run.wait(30)
        if hasattr(self, "prometheus"):
            self.prometheus.kill()
        self.traffic.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    try:
        yield shop
    finally:
        shop.close()


OLD, MIXED = ["version 1"] * 3, ["version 2", "version 1", "version 1"]


def test_a_bad_version_reaches_one_cluster_and_is_taken_back_and_a_fixed_one_passes(shop: Shop) -> None:
    shop.begin()
    shop.publish("bad version")
    shop.until("the canary has it", lambda: shop.pages() == ["bad version", "version 1", "version 1"])
    shop.until("it is taken back", lambda: shop.pages() == OLD)
    shop.until("the rollout has failed", lambda: "quarantined" in shop.show())
    failed = next(fact for fact in shop.facts() if fact["fact"] == "failed")
    assert failed["unit"] == "berlin"
    assert "canary analysis: errors: the canary is worse" in failed["why"]
    assert not any("bad" in page for page in shop.pages())
    assert [fact["units"] for fact in shop.facts() if fact["fact"] == "updated"] == [["berlin"]]

    shop.publish("version 3")
    shop.until("all have the fixed version", lambda: shop.pages() == ["version 3"] * 3)
    shop.until("the rollout is completed", lambda: shop.facts()[-1]["fact"] == "ended")
    assert shop.facts()[-1]["how"] == "completed"
    # Each event is a sentence.
    rows = shop.lehr("rollout", "history", "--all").splitlines()[1:]
    assert all(len(row.split()) > 2 for row in rows)


def test_without_prometheus_a_rollout_holds_names_the_cause_and_continues_when_it_is_back(shop: Shop) -> None:
    shop.begin()
    shop.publish("version 2")
    shop.until("the canary has it", lambda: shop.pages() == MIXED)
    shop.prometheus.kill()
    unanswered = f"prometheus: no connection to {shop.prometheus.address.removeprefix('http://')}"
    shop.until("the cause is shown", lambda: unanswered in shop.show())
    time.sleep(8.0)  # more than an analysis with data takes
    assert shop.pages() == MIXED
    assert not any(fact["fact"] in ("validated", "failed", "ended") for fact in shop.facts())
    assert unanswered in shop.show()
    shop.prometheus.start()
    shop.until("all have it", lambda: shop.pages() == ["version 2"] * 3)
    shop.until("the rollout is completed", lambda: shop.facts()[-1]["fact"] == "ended")
    assert shop.facts()[-1]["how"] == "completed"


def test_no_traffic_at_the_deadline_holds_with_a_named_cause_and_promote_once_continues(shop: Shop) -> None:
    shop.begin(deadline=6.0)
    shop.traffic.flows = False
    shop.publish("version 2")
    shop.until("the canary has it", lambda: shop.pages() == MIXED)
    shop.until("the deadline has passed", lambda: "is not good after 6 s" in shop.show())
    held = shop.show()
    assert "canary analysis: errors: " in held
    assert shop.pages() == MIXED
    answer = shop.lehr("rollout", "promote", "--reason", "nobody visits at night")
    shop.until("the next wave has it", lambda: shop.pages() == ["version 2"] * 3)
    assert "error" not in answer, answer
    shop.until("the rollout is completed", lambda: shop.facts()[-1]["fact"] == "ended")
    commands = [fact["command"] for fact in shop.facts() if fact["fact"] == "commanded"]
    assert commands == ["promote"]
