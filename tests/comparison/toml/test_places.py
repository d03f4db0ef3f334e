"""Where the keys of a TOML text are: the scanner finds the keys that the standard library's parser finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison.toml.places import NotToml, Place, located, written

TEXT = """\
# a comment with [brackets] and "quotes"
name = "a # in a text" # and a comment
session.timeout.ms = 6000
"quoted key" = 'C:\\path'
long = \"\"\"
name = "inside a long text"
\"\"\"\"
words = [
    "one", # [steps]
    'two',
]

[defaults]
members = 4

[[steps]]
step = "form"
settings = { "a.b" = [1, { c = 2 }], d.e = true }

[[steps]]
[steps . "parameters"]
by_ms = 1979-05-27 07:32:00
"""


def paths(content: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every key, and every element of a list."""
    parts = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, value in parts:
        yield (*above, name)
        yield from paths(value, (*above, name))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_every_key_is_found_at_its_line_and_column(ends: str) -> None:
    found = located(TEXT.replace("\n", ends))
    assert set(found.places) == set(paths(found.content))
    assert found.places["session", "timeout", "ms"] == Place(3, 1)
    assert found.places["words", 1] == Place(10, 5)
    assert found.places["steps", 0, "settings", "a.b", 1, "c"] == Place(18, 28)
    assert found.places["steps", 1, "parameters", "by_ms"] == Place(22, 1)


def test_a_key_that_is_not_written_is_at_the_table_around_it() -> None:
    found = located(TEXT)
    assert found.place(("steps", 0, "fault")) == Place(16, 1)
    assert found.place(("nothing",)) is None


def test_a_text_that_is_not_toml_says_where() -> None:
    with pytest.raises(NotToml, match="Invalid value") as caught:
        located('name = "x"\nsteps = [[\n  ?]]')
    assert caught.value.place == Place(3, 3)


def test_too_many_arrays_inside_each_other_are_refused() -> None:
    assert len(located(f"a = {'[' * 50}{']' * 50}").places) == 50
    with pytest.raises(NotToml, match="too many tables or arrays inside each other"):
        located(f"a = {'[' * 5_000}{']' * 5_000}")


@pytest.mark.timeout(60)  # the parser alone would take minutes for the longest
@pytest.mark.parametrize("written_as", ["{} = 1", "c = 1\n[{}]", "c = 1\n[[ {} ]]", "a = [{{ b = 1, {} = 2 }}]"])
@pytest.mark.parametrize("part", ["a", '"a.b"', "'a' "])
def test_a_key_of_too_many_parts_is_refused_however_long_it_is(written_as: str, part: str) -> None:
    assert located(written_as.format(".".join([part] * 47)))
    for parts in (52, 100_000):
        with pytest.raises(NotToml, match="too many tables or arrays inside each other") as caught:
            located(written_as.format(".".join([part] * parts)))
        assert caught.value.place is not None


def test_dots_in_a_text_are_no_keys() -> None:
    assert located(f'a = "{"b." * 60}" # {"c." * 60}\n').content == {"a": "b." * 60}
    assert located(".".join("a" * 51) + " = 1").content.keys() == {"a"}


KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES = st.recursive(
    st.one_of(
        st.integers(-9, 9),
        st.booleans(),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(name)} = {inline(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[ " + ",\n".join(map(inline, value)) + "]"
    return written(value) if isinstance(value, str) else str(value).lower()


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_text_is_read_as_the_parser_reads_it(top: dict[str, Any], element: dict[str, Any]) -> None:
    lines = [f"{written(name)} = {inline(value)}" for name, value in top.items()]
    header = written("\n".join(top) + "x")  # a key that the top does not have
    for _ in range(2):
        lines += [f"[[ {header} ]]", *(f"{written(name)}={inline(value)} # ]" for name, value in element.items())]
    found = located("\n".join(lines))
    assert found.content == {**top, "\n".join(top) + "x": [element, element]}
    assert set(found.places) == set(paths(found.content))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = " + "9" * 5_000, "thousands of digits"),
        ("x = " + "[" * 60 + "]" * 60, "inside each other"),
        (".".join(["a"] * 2_000) + " = 1", "inside each other"),
        ('x = ["a\\u0000b.py"]', "NUL character"),
        ('"a\\u0000" = 1', "NUL character"),
    ],
)
def test_text_that_nothing_can_use_is_refused(text: str, why: str) -> None:
    with pytest.raises(NotToml, match=why):
        located(text)
