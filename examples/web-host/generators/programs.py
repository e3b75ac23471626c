"""The programs of `app/`, as files."""

from collections.abc import Iterator

from lehr.sdk.generator import SourceFile, Yielded, asset, for_each_file


@for_each_file("app/*.py")
def program(file: SourceFile) -> Iterator[Yielded]:
    name = file.path.removeprefix("app/").removesuffix(".py")
    yield asset(f"{name}/program", "lehr.File", {"path": f"production/{name}.py", "content": file.text()})
