"""Options about Spark: what cannot work is refused by name before anything starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from comparison.pipeline.spark.master import MasterKind, parse_master
from comparison.pipeline.spark.options import REFUSED, SparkOptions, checked_memory
from comparison.pipeline.spark.settings import settings_of, shuffle_partitions
from kernel.errors import ConfigurationError, EnvironmentFault


@pytest.mark.parametrize(("size", "read"), [("2g", "2g"), ("1500M", "1500m"), ("1gb", "1g"), ("1t", "1t")])
def test_memory_has_a_unit(size: str, read: str) -> None:
    assert checked_memory(size) == read


@pytest.mark.parametrize(
    ("size", "complaint"),
    [
        ("1", "a number with a unit"),
        ("g", "a unit"),
        ("-1g", "a unit"),
        ("1.5g", "a unit"),
        ("\u0662g", "a unit"),
        ("400m", "at least 512m"),
    ],
)
def test_memory_that_spark_cannot_use_is_refused(size: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        checked_memory(size)


@pytest.mark.parametrize(
    "master",
    [
        f"local[{'9' * 5000}]",
        f"local-cluster[{'9' * 5000},1,1024]",
        f"local-cluster[1,1,{'9' * 5000}]",
        "local[1\u0662]",
        "spark://127.0.0.1:\u0667\u0660\u0667\u0667",
    ],
    ids=["local", "executors", "memory", "Arabic digits", "Arabic port"],
)
def test_master_with_a_number_that_cannot_be_meant_is_refused(master: str) -> None:
    with pytest.raises(EnvironmentFault, match=r"the Spark master .* is (not supported|malformed)\. Use "):
        parse_master(master)


@pytest.mark.parametrize("name", ["access.key", "secret.key", "bucket.mine.session.token"])
def test_credentials_on_the_command_line_are_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ConfigurationError, match="in the environment only") as refused:
        SparkOptions(conf={f"spark.hadoop.fs.s3a.{name}": "unlikely"})
    assert "unlikely" not in str(refused.value)


def test_spark_asks_the_server_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (("URL", "http://127.0.0.1:9"), ("URL_S3", "")):
        monkeypatch.setenv(f"AWS_ENDPOINT_{name}", value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "unlikely")
    settings = settings_of(parse_master("local"), tmp_path, "1g")
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:9"
    assert "unlikely" not in str(settings)
    chosen = SparkOptions(conf={"spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:8"})
    assert settings_of(parse_master("local"), tmp_path, "1g", chosen)["spark.hadoop.fs.s3a.endpoint"].endswith(":8")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert not [name for name in settings_of(parse_master("local"), tmp_path, "1g") if "s3a.endpoint" in name]


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_would_break_the_analysis_are_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{re.escape(name)} cannot be set: {re.escape(REFUSED[name])}"):
        SparkOptions(conf={name: "x"})


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"conf": {"eventLog": "1"}}, "must begin with 'spark.'"),
        ({"conf": {"spark.sql.shuffle.partitions": "many"}}, "is 'many': must be between 1 and"),
        ({"driver_host": "nohost.invalid"}, "--driver-host is nohost.invalid: .*Give an address of this machine"),
        ({"bind_address": "192.0.2.1"}, "cannot listen on 192.0.2.1: "),
        ({"environment": "missing.tar.gz"}, "there is no file missing.tar.gz"),
        ({"environment": "folder"}, "is not a packed environment"),
    ],
)
def test_options_that_cannot_work_are_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        SparkOptions(**given)


def test_executors_use_the_environment_that_they_are_given(tmp_path: Path) -> None:
    archive = tmp_path / "packed.tar.gz"
    archive.touch()
    options = SparkOptions(environment=str(archive))
    settings = settings_of(parse_master("local[1]"), tmp_path, "1g", options)
    assert settings["spark.archives"] == f"{archive}#environment"
    assert options.python == "./environment/bin/python"
    assert SparkOptions(environment=str(archive), executor_python="python3.11").python == "python3.11"


def test_settings_of_the_user_come_last(tmp_path: Path) -> None:
    options = SparkOptions(conf={"spark.executor.memory": "3g", "spark.eventLog.enabled": "true"})
    settings = settings_of(parse_master("local[1]"), tmp_path, "2g", options)
    assert settings["spark.driver.memory"] == "2g"
    assert (settings["spark.executor.memory"], settings["spark.eventLog.enabled"]) == ("3g", "true")


@pytest.mark.parametrize(
    ("conf", "cores", "partitions"),
    [
        ({}, 64, 64),
        ({}, 1, 2),
        ({"spark.default.parallelism": "7"}, 24, 7),
        ({"spark.sql.shuffle.partitions": "5"}, 2, 5),
    ],
)
def test_shuffle_partitions_follow_from_the_parallelism(conf: dict[str, str], cores: int, partitions: int) -> None:
    assert shuffle_partitions(conf, cores) == partitions


@pytest.mark.parametrize(
    ("url", "kind", "cores"),
    [
        ("local", MasterKind.LOCAL, 1),
        ("local[4]", MasterKind.LOCAL, 4),
        ("local[4,2]", MasterKind.LOCAL, 4),
        ("local-cluster[2,3,1024]", MasterKind.LOCAL_CLUSTER, 6),
        ("spark://a:7077,b.example:7078", MasterKind.STANDALONE, None),
        ("spark://[::1]:7077", MasterKind.STANDALONE, None),
    ],
)
def test_supported_masters_are_understood(url: str, kind: MasterKind, cores: int | None) -> None:
    master = parse_master(url)
    assert (master.kind, master.cores) == (kind, cores)


@pytest.mark.parametrize("url", ["", "foo://bar", "mesos://h:1", "local[x]", "local[0]", "sprk://h:1"])
def test_other_masters_are_refused_with_those_that_are_supported(url: str) -> None:
    with pytest.raises(EnvironmentFault, match=r"is not supported. Use local\[\*\].*spark://HOST:PORT"):
        parse_master(url)


@pytest.mark.parametrize(
    "url", ["spark://", "spark://h", "spark://h:0", "spark://h:99999", "spark://h:1,", "spark://h:1/x"]
)
def test_malformed_addresses_are_refused(url: str) -> None:
    with pytest.raises(EnvironmentFault, match=r"is malformed. Use spark://HOST:PORT"):
        parse_master(url)


def test_kubernetes_is_passed_on() -> None:
    master = parse_master("k8s://https://10.0.0.5:6443")
    assert (master.kind, master.addresses) == (MasterKind.KUBERNETES, (("10.0.0.5", 6443),))


def test_yarn_needs_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EnvironmentFault, match="Set HADOOP_CONF_DIR"):
        parse_master("yarn")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert parse_master("yarn").kind is MasterKind.YARN
