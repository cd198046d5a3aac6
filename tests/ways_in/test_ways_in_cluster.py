"""The life of a table on a cluster whose workers see nothing of the driver's disk."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from ci_share import only_in_soak
from s3_server import S3Store
from s3_spark import connector, connector_jars, hadoop_settings
from spark_local.archives import frazil_archive, spark_archive
from ways_in.cluster import CONNECTORS, cluster, need_namespaces
from ways_in.environments import environment

pytestmark = pytest.mark.soak

JOB = Path(__file__).with_name("cluster_job.py")
ALL, ZIPPED, ADDED, NOTHING = "in the environment", "--py-files", "addPyFile", "not there"


def packed(python: Path, target: Path, *, without: str = "") -> Path:
    """Pack an environment as `venv-pack` does: programs as they are, packages as files."""
    folder = python.parents[1]
    # Time goes into bytes here, and Spark asks for this kind.
    with tarfile.open(target, "w:gz", compresslevel=0) as archive:
        archive.add(folder / "bin", "bin")
        archive.add(folder / "pyvenv.cfg", "pyvenv.cfg")
        archive.dereference = True
        archive.add(
            folder / "lib",
            "lib",
            filter=lambda each: None if without and f"/{without}" in each.name else each,
        )
    return target


@pytest.mark.parametrize(
    ("way", "life"),
    [
        (ALL, "short"),
        *(only_in_soak(way, "whole") for way in (ALL, ZIPPED, ADDED, NOTHING)),
    ],
)
def test_a_table_lives_on_a_cluster_that_shares_no_disk(
    way: str, life: str, wheel: Path, s3: S3Store, tmp_path: Path
) -> None:
    need_namespaces(tmp_path)
    python = environment(tmp_path / "env", wheel, "s3")
    for name in ("spark", "cluster", "driver"):
        (tmp_path / name).mkdir()
    spark = spark_archive(tmp_path / "spark")
    archive = frazil_archive(tmp_path / "frazil.zip")
    bucket = s3.new_bucket(f"cluster-{os.getpid()}")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "700m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **hadoop_settings(s3.properties),
    }
    # The functions that hurt an attempt need PyArrow there.
    hurt = {"killed": 100, "slow": 200} if life == "whole" and way != NOTHING else {}
    if "slow" in hurt:
        # A second attempt begins beside the first, but not of one that is to be killed.
        settings |= {"spark.speculation": "true", "spark.speculation.quantile": "0.5"}
        settings["spark.speculation.minTaskRuntime"] = "20s"
    words, jars = [], [] if way == ZIPPED else connector_jars(tmp_path)
    if jars:
        settings["spark.driver.extraClassPath"] = os.pathsep.join(map(str, jars))
        settings["spark.executor.extraClassPath"] = f"{CONNECTORS}/*"
    else:
        # Executors get these jars of the driver, too.
        settings["spark.jars.packages"] = connector()
    if way != NOTHING:
        target = tmp_path / "environment.tar.gz"
        packed(python, target, without="" if way == ALL else "frazil")
        words += ["--archives", f"{target}#environment"]
        settings["spark.pyspark.python"] = "./environment/bin/python"
        settings["spark.pyspark.driver.python"] = str(python)
    if way == ZIPPED:
        words += ["--py-files", str(archive)]
    given = {
        "uri": f"sqlite:///{tmp_path}/driver/catalog.db",
        "warehouse": f"{bucket}/warehouse",
        "properties": s3.properties,
        "add": str(archive) if way == ADDED else None,
        "hidden": str(tmp_path),
        "hurt": hurt,
        "all": life == "whole",
    }
    with cluster(tmp_path / "cluster", spark, jars=jars) as running:
        confs = [each for key, value in settings.items() for each in ("--conf", f"{key}={value}")]
        command = [str(spark / "bin" / "spark-submit"), "--master", running.master, *confs, *words]
        variables = {"SPARK_HOME": str(spark), "PYSPARK_DRIVER_PYTHON": str(python)}
        left_out = ("PYTHONPATH", "PYSPARK_PYTHON")
        done = subprocess.run(
            [*command, str(JOB), json.dumps(given)],
            env={k: v for k, v in os.environ.items() if k not in left_out} | variables,
            cwd=tmp_path / "driver",
            capture_output=True,
            text=True,
            timeout=400,
        )
    assert done.returncode == 0, "\n".join([*said(done.stderr), *said(done.stdout)])
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["wrong"] == []
    begun = [each for root in running.roots for each in root.glob("work/*/[0-9]*")]
    assert len(begun) == (3 if hurt else 2)
    for prefix, place, sees_the_driver in told["executors"]:
        assert not sees_the_driver
        assert (place is None) == (way == NOTHING)
        assert prefix.endswith("/environment") == (way != NOTHING)
        if place is not None:
            assert place.startswith(prefix) == (way == ALL)
            assert ("frazil.zip" in place) == (way != ALL)
    if way == NOTHING:
        assert "the Python of Spark's executors lacks the packages frazil" in told["refused"]
    assert told["by arrow"] == (0 if way == NOTHING else 3)


def said(text: str) -> list[str]:
    """The last lines of a program that are no log."""
    return [line for line in text.splitlines() if " INFO " not in line][-80:]
