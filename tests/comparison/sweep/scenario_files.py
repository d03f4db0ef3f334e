"""Texts of scenario files."""

from __future__ import annotations


def text_of(name: str, **defaults: int) -> str:
    """A scenario that only forms a group."""
    given = "".join(f"defaults.{key} = {value}\n" for key, value in defaults.items())
    return f'name = "{name}"\n{given}[[steps]]\nstep = "form"\n'
