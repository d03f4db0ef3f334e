"""Text in Markdown: nothing in it becomes markup, and ordinary text stays readable."""

from __future__ import annotations

import pytest

from comparison.report.diagrams.markdown import code, escaped, in_comment


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("m1.2: group-rebalancing", "m1.2: group-rebalancing"),
        ("my_group (NOT_COORDINATOR)", "my_group (NOT_COORDINATOR)"),
        ("_m_ *m* __m", r"\_m\_ \*m\* \_\_m"),
        ("<b>&amp;", r"\<b\>\&amp;"),
        ("[x](y) ![x]", r"\[x\](y) \!\[x\]"),
        ("a|b # `c` \\", r"a\|b \# \`c\` " + "\\\\"),
    ],
)
def test_characters_of_markup_are_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("getData ids/m3", "`getData ids/m3`"), ("a|b", r"`a\|b`"), ("a`b", "`` a`b ``"), ("``", "``` `` ```")],
)
def test_code_has_a_fence_that_its_text_does_not_end(text: str, shown: str) -> None:
    assert code(text) == shown


def test_comment_is_not_ended_by_its_text() -> None:
    assert in_comment("herd --><b>") == "herd --&gt;<b>"
