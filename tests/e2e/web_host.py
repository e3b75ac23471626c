"""The example `web-host` with real nginx and Redis, on free ports."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lehr.plugins.process import procfs
from tests.e2e.bad_input.workspace import Workspace, until
from tests.installed import installed
from tests.load import Load
from tests.ports import free_ports

EXAMPLE = Path(__file__).parents[2] / "examples" / "web-host"


class Host(Workspace):
    """A checkout of the example, on free ports."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.nginx, self.redis, self.visits = (first := free_ports(3)), first + 1, first + 2
        shutil.copytree(EXAMPLE, self.repository, dirs_exist_ok=True)
        self.configure(self.nginx)
        found = {str(Path(installed(name)).parent) for name in ("nginx", "redis-server")}
        self.environment["PATH"] = os.pathsep.join([self.environment["PATH"], *found])
        self.made = self.repository / "production"

    def configure(self, nginx: int) -> None:
        """Let nginx listen on another port."""
        ports = {"nginx_port": nginx, "redis_port": self.redis, "visits_port": self.visits}
        self.write("config/host.yaml", json.dumps(ports))

    def site(self, name: str, title: str, **fields: str) -> None:  # type: ignore[override]
        """Declare a site."""
        about = {"host": f"{name}.localhost", "title": title, "team": "web", **fields}
        self.write(f"sites/{name}.yaml", json.dumps(about))

    def ask(self, name: str, path: str = "/") -> tuple[int, str]:
        """Status and body of a page of a site; 0 without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.nginx, timeout=5)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", path, headers={"Host": f"{name}.localhost", "Connection": "close"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode().strip()
        return 0, ""

    def shows(self, name: str, title: str) -> None:
        """Wait until a site shows this."""
        expected = 200, f"<h1>{title}</h1>"
        until(f"{name} shows {title}", lambda: self.ask(name) == expected, lambda: repr(self.ask(name)))

    def is_gone(self, name: str) -> None:
        """Wait until a site is not served any more."""

        def explain() -> str:
            return "\n".join(self.lehr("why", id).out for id in ("nginx/process", f"{name}/vhost"))

        until(f"{name} is gone", lambda: self.ask(name)[0] == 404, explain)

    def changed_under_load(self, *, sites: int, restarts: int, rounds: int) -> Load:
        """Requests for one site while others come and go, and the control plane is restarted.

        Args:
            sites: number of other sites.
            restarts: of the control plane.
            rounds: new and retired sites between two of them; each reloads nginx twice.
        """
        old = [f"old-{number}" for number in range(sites)]
        new = [f"new-{number}" for number in range(restarts * rounds)]
        for name in old:
            self.site(name, name)
        self.declare("many", "lehr.DeletionBudget", {"removals": 100})
        self.commit()
        with self.run():
            self.wait()
        changes = iter(zip(new, old, strict=False))
        with Load(self.nginx, host="shop.localhost") as load:
            for _ in range(restarts):
                with self.run():
                    for comes, goes in itertools.islice(changes, rounds):
                        self.site(comes, comes)
                        self.commit()
                        self.shows(comes, comes)
                        self.site(goes, goes, retired="the campaign is over")
                        self.commit()
                        self.is_gone(goes)
        return load

    def pid(self, port: int) -> int:
        """The process that listens on a port: of nginx, the master. 0 for none."""
        found = procfs.listeners(frozenset({port}))
        return min((pid for _, pid in found if pid is not None), default=0)


@contextlib.contextmanager
def web_host() -> Iterator[Host]:
    """A host whose files everybody may read, as the workers of nginx must."""
    folder = Path(tempfile.mkdtemp(prefix="lehr-web-host-"))
    folder.chmod(0o755)
    yield Host(folder)
    for record in (folder / "state").glob("supervisor/*/supervisord.pid"):
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(record.read_text()), signal.SIGTERM)
    shutil.rmtree(folder, ignore_errors=True)
