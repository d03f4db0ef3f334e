"""Who may talk to the playground."""

from __future__ import annotations

import pytest

from comparison.playground.web.guard import new_token, refusal

OWN = {"Host": "127.0.0.1:4711"}


def refused(headers, given="secret"):
    found = refusal(headers, given=given, token="secret", port=4711)
    return None if found is None else found.status


@pytest.mark.parametrize(
    "headers",
    [
        OWN,
        {"Host": "localhost:4711"},
        {**OWN, "Origin": "http://127.0.0.1:4711", "Sec-Fetch-Site": "same-origin"},
        {**OWN, "Sec-Fetch-Site": "none"},
    ],
)
def test_the_pages_own_requests_are_answered(headers):
    assert refused(headers) is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1:4712"}, 421),
        ({"Host": "rebound.example:4711"}, 421),
        ({"Host": "127.0.0.1:4711.example"}, 421),
        ({**OWN, "Origin": "http://evil.example"}, 403),
        ({**OWN, "Origin": "https://127.0.0.1:4711"}, 403),
        ({**OWN, "Origin": "http://127.0.0.1:4712"}, 403),
        ({**OWN, "Origin": "null"}, 403),
        ({**OWN, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**OWN, "Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_strangers_are_refused(headers, status):
    assert refused(headers) == status


def test_the_default_port_may_be_left_out():
    headers = {"Host": "127.0.0.1", "Origin": "http://127.0.0.1"}
    assert refusal(headers, given="secret", token="secret", port=80) is None


@pytest.mark.parametrize("given", ["", "secre", "secrets", "Secret", "sécret", "\udcff"])
def test_a_wrong_token_finds_nothing(given):
    assert refused(OWN, given) == 404


def test_tokens_are_long_and_differ():
    found = {new_token() for _ in range(10)}
    assert len(found) == 10
    assert all(len(each) >= 32 for each in found)
