"""Errors that reached applications, told once each."""

from __future__ import annotations

from comparison.failures import each_once


def test_each_error_is_told_once_with_everybody_whom_it_reached() -> None:
    refused, broken = "GroupFull: the group has 4 members: no more", "ValueError: boom"
    told = [f"m1: {refused}", f"m2: {broken}", f"m2: {refused}", f"m1: {refused}", f"m1: {refused}"]
    assert each_once(told) == [f"m1, m2: {refused}", f"m2: {broken}"]
    assert each_once([]) == []
