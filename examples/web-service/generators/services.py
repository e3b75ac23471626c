"""From what people write to assets. Nothing here has to be changed for one more service.

`services/*.yaml` are in the words of a service model: `model:` says which. `app/*` are programs; they are
kept as files below production/, so that what runs is what was committed.
"""

from collections.abc import Iterator

from lehr.sdk.generator import SourceFile, Yielded, asset, for_each_file
from lehr.service_models import modelled


@for_each_file("services/*.yaml")
def services(file: SourceFile) -> Iterator[Yielded]:
    yield from modelled(file)


@for_each_file("app/*.py")
def programs(file: SourceFile) -> Iterator[Yielded]:
    name, path = file.path.removeprefix("app/"), f"production/{file.path}"
    yield asset(f"programs/{name}", "lehr.File", {"path": path, "content": file.text()})
