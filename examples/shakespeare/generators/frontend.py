"""The frontend, by a service model that ships with Lehr."""

from collections.abc import Iterator

from lehr.sdk.generator import SourceFile, Yielded, for_each_file
from lehr.service_models import web_service

PYTHON = ["python3", "production/bin/frontend.py"]


@for_each_file("frontend.yaml")
def frontend(file: SourceFile) -> Iterator[Yielded]:
    yield from web_service(
        file,
        command=[*PYTHON, "--version", "{version}", "--cluster", "{cluster}", "--port", "{port}"],
        envoy=["python3", "production/bin/envoy.py"],
        restart_on=["programs/frontend.py"],
        envoy_restart_on=["programs/envoy.py"],
        needs=["database/lines"],
        schema="database/schema",
    )
