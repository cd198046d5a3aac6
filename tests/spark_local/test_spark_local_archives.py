"""Where pip has no part: Spark comes as an archive, Frazil as a file of `--py-files`."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest

import frazil
from programs import ended_program
from spark_local.archives import frazil_archive, import_only_from, packages_but, spark_archive

WITHOUT_PIP = """
import json
from importlib.metadata import PackageNotFoundError, version

def known(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return None

import frazil, pyspark
from frazil.cli.commands.setup.versions import version_findings

spark = frazil.local_session(cores=1)
spark.sparkContext.addPyFile(FRAZIL)
lake = frazil.connect(spark, warehouse=WAREHOUSE)
lake.create_namespace("db")
table = lake.create_table("db.t", "id bigint, v string")
table.append(spark.range(5).selectExpr("id", "'a' AS v"))
table.update({"v": "'b'"}, where="id > 2")
summary = table.current_snapshot.summary
print(json.dumps({
    "pip": [known("pyspark"), known("frazil")],
    "places": [pyspark.__file__, frazil.__file__],
    "rows": [tuple(row) for row in table.to_df().orderBy("id").collect()],
    "memory": spark.conf.get("spark.driver.memory"),
    "writer": summary["iceberg-version"],
    "function": lake.sql("SELECT system.iceberg_version()").first()[0],
    "findings": [[each.check, each.state] for each in version_findings()],
}))
"""


@pytest.mark.check
def test_spark_from_an_archive_and_frazil_as_one_file(tmp_path):
    for name in ("spark", "packages"):
        (tmp_path / name).mkdir()
    spark = spark_archive(tmp_path / "spark", settings="spark.driver.memory 700m\n")
    archive = frazil_archive(tmp_path / "frazil.zip")
    packages = packages_but(tmp_path / "packages", "pyspark", "py4j", "frazil")
    [bridge] = (spark / "python" / "lib").glob("py4j-*.zip")
    program = import_only_from([archive, spark / "python", bridge, packages])
    program += WITHOUT_PIP.replace("FRAZIL", repr(str(archive)))
    program = program.replace("WAREHOUSE", repr(str(tmp_path / "lake")))
    found = json.loads(ended_program(program, variables={"SPARK_HOME": None}).printed)
    assert found["pip"] == [None, None]
    places = [str(spark / "python" / "pyspark"), str(archive / "frazil")]
    assert [str(Path(each).parent) for each in found["places"]] == places
    assert found["rows"] == [[0, "a"], [1, "a"], [2, "a"], [3, "b"], [4, "b"]]
    # The archive's own configuration counts where no SPARK_HOME names it.
    assert found["memory"] == "700m"
    number = version("frazil")
    assert [found["writer"], found["function"]] == [f"Frazil {number}", number]
    states = dict(found["findings"])
    assert states["Frazil"] == "warning"
    assert states["PySpark"] == "ok"


EVERY_MODULE = """
import pkgutil, frazil
for each in pkgutil.walk_packages(frazil.__path__, "frazil."):
    if not each.name.endswith("__main__"):
        __import__(each.name)
print(frazil.__file__, frazil.__version__, sum(name.startswith("frazil.") for name in sys.modules))
"""


@pytest.mark.check
def test_every_module_is_imported_from_one_file(tmp_path):
    (tmp_path / "packages").mkdir()
    archive = frazil_archive(tmp_path / "frazil.zip")
    packages = packages_but(tmp_path / "packages", "frazil")
    program = import_only_from([archive, packages]) + EVERY_MODULE
    place, number, modules = ended_program(program).printed.split()
    assert place == f"{archive}/frazil/__init__.py"
    assert number == version("frazil") == frazil.__version__
    assert int(modules) > 500
