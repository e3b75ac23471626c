import pytest

from lehr.base.pointers import parts_of, pointer


@pytest.mark.parametrize(
    ("parts", "text"),
    [((), ""), (("a", "1"), "/a/1"), (("a/b", "c~d"), "/a~1b/c~0d"), (("~1",), "/~01"), (("",), "/")],
)
def test_a_pointer_leads_back_to_its_parts(parts: tuple[str, ...], text: str) -> None:
    assert pointer(parts) == text
    assert parts_of(text) == parts


def test_an_index_is_written_as_a_number() -> None:
    assert pointer(("replicas", 0)) == "/replicas/0"
