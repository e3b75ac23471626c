"""The database, by a service model that ships with Lehr."""

from collections.abc import Iterator

from lehr.sdk.generator import SourceFile, Yielded, for_each_file
from lehr.service_models import database


@for_each_file("schema.yaml")
def plays(file: SourceFile) -> Iterator[Yielded]:
    yield from database(file)
