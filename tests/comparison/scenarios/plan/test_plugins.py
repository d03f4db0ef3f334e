"""Plugins: files that cannot be read or imported, and names that are taken, are refused with the traceback."""

from __future__ import annotations

import logging
import py_compile
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from comparison.scenarios.plan.plugins import ENTRY_POINTS, load, load_installed, loaded
from comparison.scenarios.plan.scenario_file import parse_scenario
from kernel.errors import ConfigurationError, SeveralErrors
from tests.support.commands.complaints import place_first
from tests.support.commands.installed import installed


def test_a_plugin_that_raises_is_refused_with_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def broken():\n    return 1 / 0\n\nbroken()\n")
    with pytest.raises(
        SeveralErrors, match=r"mine\.py cannot be loaded: ZeroDivisionError: division by zero"
    ) as caught:
        load("mine.py", tmp_path)
    assert "line 2, in broken" in caught.value.details
    assert not [each for each in loaded() if each.named == "mine.py"]


def test_a_scenario_says_where_it_names_a_plugin_that_fails(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import nothing_of_that_name\n")
    text = 'name = "mine"\nplugins = [\n  "mine.py",\n  "no_module_of_that_name",\n]\n[[steps]]\nstep = "form"\n'
    with pytest.raises(SeveralErrors) as caught:
        parse_scenario(text, str(tmp_path / "my.toml"), lambda _, __: "")
    first, second = map(place_first, caught.value.texts)
    assert "my.toml, line 3, column 3: the plugin" in first
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in first
    assert "line 4, column 3: the plugin no_module_of_that_name cannot be loaded: ModuleNotFoundError" in second
    assert caught.value.details.count("Traceback") == 2


def test_a_plugin_is_loaded_once_wherever_its_copy_is(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "counted.py").write_text("# the same text\n")
    assert load("counted.py", tmp_path / "a") is load(str(tmp_path / "b" / "counted.py"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no such file or folder .*absent\.py"):
        load("absent.py", tmp_path)


def test_an_installed_plugin_that_fails_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    installed(tmp_path / "site", "broken_plugin", "1 / 0\n", ENTRY_POINTS, {"broken": "broken_plugin"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with caplog.at_level(logging.WARNING):
        load_installed()
    assert "the installed plugin broken is left out: " in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_the_text_of_a_plugin_is_run_and_not_what_python_has_cached_of_it(tmp_path: Path) -> None:
    """A digest is of the text, and whoever gives a folder away can put anything beside it."""
    source, other = tmp_path / "cached.py", tmp_path / "other.py"
    source.write_text("# what is read\n")
    other.write_text("raise SystemExit('what is cached')\n")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), cache_from_source(str(source)), str(source), invalidation_mode=unchecked)
    before = sorted(tmp_path.rglob("*"))
    assert load("cached.py", tmp_path).text == "# what is read\n"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_folder_of_a_run_has_its_plugins_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("# kept\n")
    assert load("below/beside.py", tmp_path).path == tmp_path / "beside.py"


def test_two_plugins_of_one_name_are_refused_since_a_run_could_keep_only_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.py").write_text(f"# {name}\n")
    load("a/same.py", tmp_path)
    before = loaded()
    with pytest.raises(ConfigurationError, match=r"a/same\.py and .*b/same\.py have the same name.* Rename one"):
        load("b/same.py", tmp_path)
    assert loaded() == before
