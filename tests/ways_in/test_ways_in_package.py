"""A wheel in an environment that has what it says it needs, with each Spark that there may be."""

from __future__ import annotations

import json
import subprocess
import urllib.request
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pyspark
import pytest

from ci_share import only_in_soak
from docs.pages import blocks_of, masked
from programs import Program, ended_program
from ways_in.environments import ROOT, built, environment, packages_of

pytestmark = pytest.mark.check

README = ROOT / "README.md"
OF_CLIENT = ("bin", "core", "data", "examples", "jars", "licenses", "python", "sbin")
"""What PySpark has and `pyspark-client` has not, beside py4j."""


def fetched(folder: Path, wheel: Path, *extras: str, besides: Sequence[str] = ()) -> Path:
    """Make an environment of a wheel by pip, which fetches all else from its registry.

    Returns:
        Its Python.
    """
    venv.create(folder, symlinks=True, with_pip=True)
    python = folder / "bin" / "python"
    wanted = f"{wheel}[{','.join(extras)}]"
    subprocess.run([python, "-m", "pip", "install", "-q", wanted, *besides], check=True)
    return python


@pytest.fixture(scope="module", params=[environment, only_in_soak(fetched)])
def without_spark(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """The Python of `pip install 'frazil[serve]'`."""
    folder = tmp_path_factory.mktemp("serve")
    python: Path = request.param(folder, wheel, "serve", "s3", "postgres", "report")
    return python


def test_a_source_distribution_makes_the_wheel_of_its_checkout(wheel: Path, tmp_path: Path) -> None:
    direct = built(tmp_path, "wheel")
    assert direct.name == wheel.name
    assert direct.read_bytes() == wheel.read_bytes()


@pytest.mark.soak  # CI runs them on the page, and asks what an extra brings in `docs`
@pytest.mark.parametrize("way", [environment, fetched])
def test_the_programs_of_the_readme_run_after_its_first_line(
    way: Callable[..., Path], wheel: Path, tmp_path: Path
) -> None:
    assert 'pip install "frazil[local]"' in README.read_text()
    python = way(tmp_path / "env", wheel, "local")
    blocks = [each for each in blocks_of(README) if not each.is_left_alone]
    program = "\n".join(each.text for each in blocks if each.language == "python")
    printed = ended_program(placed(program, tmp_path), python=python, cwd=tmp_path).printed
    assert masked(printed) == masked("".join(each.printed or "" for each in blocks))
    [lines] = [each.text for each in blocks if "$ frazil" in each.text]
    command, told = placed(lines, tmp_path).split("\n", 1)
    line = command.replace("$ frazil", str(python.with_name("frazil")))
    ran = subprocess.run(line, shell=True, text=True, capture_output=True, cwd=tmp_path)
    assert masked(ran.stdout) == masked(told), ran.stderr


def placed(text: str, folder: Path) -> str:
    return text.replace("/tmp/lake", str(folder / "lake"))


def test_without_spark_a_lake_is_made_looked_at_and_served(
    without_spark: Path, tmp_path: Path
) -> None:
    command = [str(without_spark.with_name("frazil")), "--warehouse", str(tmp_path / "lake")]

    def frazil(*words: str, code: int = 0) -> str:
        ran = subprocess.run([*command, *words], capture_output=True, text=True, cwd=tmp_path)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    frazil("create-namespace", "db")
    frazil("create", "db.t", "id bigint, s string")
    assert "id" in frazil("describe", "db.t")
    found = {each["check"]: each for each in json.loads(frazil("doctor", "--json"))}
    assert found["PySpark"]["state"] == "warning"
    assert "pip install 'frazil[local]'" in found["PySpark"]["advice"]
    assert "Java" not in found
    words = ["--warehouse", tmp_path / "lake", "serve", "--port", "0"]
    with Program("frazil", *words, python=without_spark) as server:
        server.wait_until(lambda: "is served on" in server.printed)
        uri = server.printed.split()[-1]
        with urllib.request.urlopen(f"{uri}/v1/namespaces/db/tables/t") as answer:
            [first, _] = json.load(answer)["metadata"]["schemas"][0]["fields"]
        assert first == {"id": 1, "name": "id", "type": "long", "required": False}
    for words in (["sql", "SELECT 1"], ["spark-server", "--connect", "1"]):
        assert "pip install 'frazil[local]' brings it" in frazil(*words, code=1)


ON_A_SERVER = """
import json, frazil, pyspark
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(ADDRESS).getOrCreate()
lake = frazil.connect(spark, warehouse=WAREHOUSE)
lake.create_namespace("db")
lake.sql("CREATE TABLE db.t (id BIGINT, v STRING) PARTITIONED BY (bucket(2, id))")
table = lake.load_table("db.t")
table.append(spark.range(5).selectExpr("id", "'a' AS v"))
table.upsert(spark.sql("select 3L as id, 'b' as v"), keys="id")
lake.attach(name="lake")
spark.sql("DELETE FROM lake.db.t WHERE id = 1")
rows = sorted(map(tuple, spark.table("lake.db.t").collect()))
lake.detach()
try:
    frazil.local_session
    said = None
except frazil.ConfigurationError as error:
    said = str(error)
print(json.dumps([rows, said, frazil.Schema.__name__]))
"""


def laid_out(folder: Path, wheel: Path) -> Path:
    """What `pyspark-client` installs, of the PySpark that the tests have."""
    python = environment(folder, wheel, "connect")
    package = packages_of(folder) / "pyspark"
    package.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name not in OF_CLIENT:
            (package / each.name).symlink_to(each)
    return python


def with_client(folder: Path, wheel: Path) -> Path:
    """The package itself, by pip from its registry."""
    return fetched(folder, wheel, "connect", besides=["pyspark-client"])


@pytest.mark.parametrize("way", [laid_out, only_in_soak(with_client)])
def test_beside_a_client_of_spark_connect_alone(
    way: Callable[[Path, Path], Path], wheel: Path, tmp_path: Path, connect_url: str
) -> None:
    python = way(tmp_path / "env", wheel)
    # A file, since `pyspark-client` takes a program without one for its own doctests.
    program = tmp_path / "program.py"
    text = ON_A_SERVER.replace("WAREHOUSE", repr(str(tmp_path / "lake")))
    program.write_text(text.replace("ADDRESS", repr(connect_url)))
    printed = ended_program(program, python=python).printed
    rows, said, name = json.loads(printed)
    assert rows == [[0, "a"], [2, "a"], [3, "b"], [4, "a"]]
    assert "pip uninstall pyspark-client" in said
    assert name == "Schema"
