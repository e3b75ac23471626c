"""The programs, as files."""

from collections.abc import Iterator

from lehr.sdk.generator import SourceFile, Yielded, asset, for_each_file


@for_each_file("{app,bin}/*")
def program(file: SourceFile) -> Iterator[Yielded]:
    name = file.path.rpartition("/")[2]
    yield asset(f"programs/{name}", "lehr.File", {"path": f"production/bin/{name}", "content": file.text()})
