"""From a few lines about a site to its page, its program, and the process that serves them."""

from collections.abc import Iterator
from html import escape

from lehr.sdk.generator import SourceFile, Yielded, asset, for_each_file


@for_each_file("sites/*.yaml")
def site(file: SourceFile) -> Iterator[Yielded]:
    about = file.yaml()
    name, title = about["name"], escape(about["greeting"])
    page = f"production/{name}/index.html"
    needs = [f"{name}/page", "program/server.py"]
    yield asset(f"{name}/page", "lehr.File", {"path": page, "content": f"<h1>{title}</h1>\n"})
    web = {
        "command": ["python3", "production/server.py", "{port}", page],
        "replicas": about["replicas"],
        "ports": [{"name": "http", "base": about["port"]}],
        "health_url": "http://127.0.0.1:{port}/healthz",
        "restart_on": needs,
    }
    depends = {"assets": [*needs, "token"]}
    yield asset(f"{name}/web", "lehr.Process", web, {"lehr.DependsOn": depends})


@for_each_file("app/*.py")
def program(file: SourceFile) -> Iterator[Yielded]:
    name = file.path.removeprefix("app/")
    yield asset(f"program/{name}", "lehr.File", {"path": f"production/{name}", "content": file.text()})
