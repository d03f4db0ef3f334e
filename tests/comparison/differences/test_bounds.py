"""Bounds as a user writes them."""

from __future__ import annotations

import pytest

from comparison.differences.bounds import ALL, Bound, bounds_of
from kernel.errors import ConfigurationError


def test_bounds_are_shares_or_numbers_of_all_figures_or_of_one() -> None:
    assert bounds_of(["20%", "lost=0,converge_ms=2.5%"]) == [
        Bound(figure=ALL, share=0.2, by=None, text="20%"),
        Bound(figure="lost", share=None, by=0.0, text="0"),
        Bound(figure="converge_ms", share=0.025, by=None, text="2.5%"),
    ]


def test_of_two_bounds_of_one_figure_the_last_counts() -> None:
    assert [bound.by for bound in bounds_of(["lost=3", "lost=0"])] == [0.0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "convrge_ms=20%",
            r"unknown figure 'convrge_ms'\. Did you mean 'converge_ms'\? Reports call it: settled after, ms",
        ),
        (
            "settled_ms=20%",
            r"unknown figure 'settled_ms'\. Did you mean 'converge_ms'\? Reports call it: settled after, ms",
        ),
        ("lost", r"'lost' has no bound\. Give lost=0, or lost=20%"),
        ("20", r"'20' is of no figure\. Give 20%, or FIGURE=20"),
        ("much", r"'much' is not a bound\. Give 20%, FIGURE=20% or FIGURE=0"),
        ("", r"'' is not a bound"),
        ("lost=-1", "is not a bound"),
        ("lost=nan%", "is not a bound"),
        ("lost=inf", "is not a bound"),
        ("=3", r"unknown figure ''"),
    ],
)
def test_what_is_no_bound_is_refused_with_what_may_be_meant(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        bounds_of([text])
