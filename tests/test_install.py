"""`make setup` shows how it goes, and says what to do when it fails. No network is needed here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import install

ROOT = Path(__file__).resolve().parents[1]
PIP = """\
Obtaining file:///home/me/lab
Collecting click>=8.4 (from rebalance-lab==0.1.0)
  Downloading click-8.5.1-py3-none-any.whl (98 kB)
Collecting pyspark==4.3.0 (from rebalance-lab==0.1.0)
  Downloading pyspark-4.3.0.tar.gz (434.1 MB)
Collecting numpy<3,>=1.26 (from rebalance-lab==0.1.0)
  Using cached numpy-2.4.0-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)
Installing collected packages: numpy, click, pyspark, rebalance-lab
Successfully installed click-8.5.1 numpy-2.4.0 pyspark-4.3.0 rebalance-lab-0.1.0
"""


def test_progress_is_what_pip_has_found_and_downloaded() -> None:
    progress = install.Progress(Path())
    news = [told for line in PIP.splitlines() if (told := progress.read(line))]
    assert news == ["downloading pyspark-4.3.0.tar.gz (434 MB)", "installing 4 packages"]
    assert list(progress.packages) == ["click", "pyspark", "numpy"]
    assert round(progress.fetched_mb) == 434
    assert progress.summary == "0 of 4 packages installed"


def test_summary_says_what_is_being_fetched() -> None:
    progress = install.Progress(Path())
    for line in PIP.splitlines()[:7]:
        progress.read(line)
    assert progress.summary == "3 packages found, 434 MB downloaded: numpy-2.4.0 (17 MB)"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("... because ensurepip is not\navailable.", "cannot create virtual environments .* apt install python3-venv"),
        ("/usr/bin/python3: No module named venv", "cannot create virtual environments"),
        ("ERROR: [Errno 28] No space left on device", "the disk is full .* Free about 2 GB"),
        ("[Errno 13] Permission denied: '/opt/x'", "a folder cannot be written"),
        ("Temporary failure in name resolution')': /simple/click/", "packages cannot be fetched .*HTTPS_PROXY"),
        ("ERROR: No matching distribution found for click", "packages cannot be fetched"),
        ("ERROR: Failed building wheel for aiokafka", "could not be built .* PYTHON="),
        ("ERROR: something new\nmore", "^ERROR: something new"),
        ("", "it said nothing"),
    ],
)
def test_failure_is_answered_with_what_to_do(said: str, complaint: str) -> None:
    told = install.complaint(said, Path(".venv/install.log"))
    assert re.search(complaint, told), told
    assert ".venv/install.log" in told
    assert told.endswith(".")


def test_step_shows_news_and_its_duration_elsewhere_than_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = f"import sys; sys.stdout.write({PIP!r})"
    made = install.perform("2/2 installing", [sys.executable, "-c", program], tmp_path)
    assert len(made.packages) == 3
    assert [re.sub(r" \(\d+ s\)$", "", line) for line in capsys.readouterr().out.splitlines()] == [
        "2/2 installing",
        "    downloading pyspark-4.3.0.tar.gz (434 MB)",
        "    installing 4 packages",
        "    done",
    ]
    assert (tmp_path / install.LOG).read_text() == PIP


def test_step_that_fails_raises_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "import sys; sys.exit('ERROR: No matching distribution found for click')"
    with pytest.raises(install.SetupFailed, match="packages cannot be fetched"):
        install.perform("2/2 installing", [sys.executable, "-c", program], tmp_path)
    assert capsys.readouterr().out.splitlines()[-1].startswith("    failed")


def test_environment_without_pip_is_made_again(tmp_path: Path) -> None:
    assert not install.works(tmp_path / "bin" / "python")
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    assert not install.works(bare)
    assert install.works(Path(sys.executable))


@pytest.mark.parametrize(
    ("python", "complaint"),
    [
        ("no-such-python", "Error: there is no no-such-python. Install Python 3.11 or newer"),
        ("./old", "Error: ./old is Python 3.9.2, and rebalance-lab needs 3.11 or newer. Set PYTHON="),
    ],
)
def test_make_names_a_python_that_cannot_be_used(tmp_path: Path, python: str, complaint: str) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "install.py"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "old").write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n')
    (tmp_path / "old").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "setup", f"PYTHON={python}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.startswith(complaint), done.stderr
