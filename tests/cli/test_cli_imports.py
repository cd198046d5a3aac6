"""What a command imports, since its user waits for that. Clocks would tell of machines."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import frazil
from ci_share import in_circles
from frazil.catalog.config import open_catalog, resolve
from frazil.cli import main
from frazil.cli.listing import SECTIONS
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.version import FRAZIL_VERSION
from programs import ended_program, run_program
from spark_local.archives import import_only_from, packages_but, spark_archive

HEAVY = {
    "fastavro", "fsspec", "httpx", "numpy", "pandas", "polars", "prompt_toolkit", "pyarrow",
    "pyspark", "rich", "sqlalchemy", "sqlglot", "thrift", "yaml",
}  # fmt: skip
RUNS = """
import json, sys
import frazil
from frazil.cli import main
sys.argv[1:] = {words}
try:
    main(prog_name="frazil")
except SystemExit:
    pass
print()
print(json.dumps(list(sys.modules)))
"""
NO_SPARK = "this needs PySpark, which this Python does not have: pip install"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    """A lake on the default catalog with db.t, which has two columns and no rows."""
    place = str(tmp_path_factory.mktemp("lake"))
    catalog = open_catalog(resolve(None, {"warehouse": place}))
    catalog.create_namespace("db")
    schema = Schema((NestedField(1, "id", LongType()), NestedField(2, "n", LongType())))
    location = catalog.default_table_location("db.t")
    catalog.create_table("db.t", new_table_metadata(schema, location=location))
    catalog.close()
    return place


def modules_of(*words):
    return set(json.loads(run_program(RUNS.format(words=list(words))).splitlines()[-1]))


def heavy(modules):
    return HEAVY & {name.partition(".")[0] for name in modules}


def own(modules):
    return [name for name in modules if name.split(".")[0] == "frazil"]


@pytest.mark.parametrize("word", ["--help", "--version", "tabels"])
def test_what_names_no_command_imports_no_library(word):
    found = modules_of(word)
    assert heavy(found) <= {"rich"}
    assert len(own(found)) < 20


@pytest.mark.parametrize(
    "words", in_circles([["describe", "db.t"], ["tables"], ["snapshots", "db.t"]], test=1)
)
def test_a_look_imports_the_catalog_and_nothing_that_reads_rows(warehouse, words):
    found = modules_of("--warehouse", warehouse, *words)
    assert heavy(found) == {"rich", "sqlalchemy"}
    assert 50 < len(own(found)) < 170


def test_a_job_that_loads_a_table_imports_the_catalog_and_what_a_table_is(warehouse):
    program = (
        "import json, sys, pyspark.sql\n"
        "before = set(sys.modules)\n"
        "from frazil.catalog.config import open_catalog, resolve\n"
        "from frazil.spark.lake import Lake\n"
        f"catalog = open_catalog(resolve(None, {{'warehouse': {warehouse!r}}}))\n"
        # Nothing of a session is asked before rows are.
        "assert len(Lake(None, catalog).load_table('db.t').schema.fields) == 2\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    found = json.loads(run_program(program))
    assert heavy(found) == {"sqlalchemy"}
    assert 50 < len(own(found)) < 180


@pytest.mark.check
def test_the_help_of_each_command_imports_nothing_of_what_it_does():
    program = (
        "import json, sys; sys.modules['pyspark'] = None\n"
        "from frazil.cli import main\n"
        "print(json.dumps([name for name in sys.argv[1:] if main.get_command(None, name)]))\n"
        "print(json.dumps([name for name, each in sys.modules.items() if each]))"
    )
    names = {listed.word for below in SECTIONS.values() for listed in below}
    found, modules = map(json.loads, run_program(program, *sorted(names)).splitlines())
    assert found == sorted(names)
    assert heavy(modules) <= {"rich", "yaml"}


def test_the_list_says_of_commands_what_their_help_says():
    commands = main.every_command()
    for listed in (each for below in SECTIONS.values() for each in below):
        command = commands[listed.words]
        assert " ".join(command.help.partition("\n\n")[0].split()) == listed.summary
        module = command.callback.__module__
        assert module == f"frazil.cli.commands.{listed.module}"
    # None is declared that is not listed.
    assert set(main.commands) == {words.partition(" ")[0] for words in commands}


def test_a_word_that_is_no_command_gets_the_nearest_one():
    ran = subprocess.run([sys.executable, "-m", "frazil", "tabels"], capture_output=True, text=True)
    assert ran.returncode == 2
    assert "No such command 'tabels'" in ran.stderr
    assert "tables" in ran.stderr


def test_warnings_as_errors_hinder_no_command(warehouse):
    words = [sys.executable, "-W", "error", "-m", "frazil", "--warehouse", warehouse, "tables"]
    ran = subprocess.run(words, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.split() == ["namespace", "table", "db", "t"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["describe", "db.t"], "db.t"),
        (["sql", "SELECT 1"], NO_SPARK),
        (["doctor"], "pip install 'frazil[local]' brings it"),
    ],
)
def test_without_pyspark_what_needs_none_goes_on(warehouse, words, said):
    words = ["--warehouse", warehouse, *words]
    program = f"import sys; sys.modules['pyspark'] = None\n{RUNS.format(words=words)}"
    ran = ended_program(program)
    assert said in ran.printed + "".join(ran.errors)


def test_without_pyspark_a_name_that_needs_it_says_so():
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import frazil\n"
        "print(frazil.Schema.__name__)\n"
        "try: frazil.connect\n"
        "except frazil.ConfigurationError as error: print(error)"
    )
    first, second = run_program(program).splitlines()
    assert first == "Schema"
    assert NO_SPARK in second


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("pyspark.__version__ = '3.5.6'", "PySpark 3.5.6 is too old: Frazil needs pyspark>="),
        ("sys.modules['pyspark.core'] = None", "pip uninstall pyspark-client"),
    ],
    ids=["too old", "of Spark Connect alone"],
)
def test_a_pyspark_that_will_not_do_is_told(there, said):
    program = (
        f"import sys, pyspark, frazil; {there}\n"
        "sys.modules.pop('pyspark.sql', None)\n"
        "del pyspark.SparkContext\n"
        "try: frazil.local_session\n"
        "except frazil.ConfigurationError as error: print(error)"
    )
    assert said in run_program(program)


def test_the_spark_that_spark_home_names_is_found(tmp_path):
    (tmp_path / "spark").mkdir()
    home = spark_archive(tmp_path / "spark")
    packages = packages_but(tmp_path, "pyspark", "py4j")
    program = import_only_from([Path(frazil.__file__).parents[1], packages])
    program += "import frazil; frazil.connect; import pyspark, py4j; print(pyspark, py4j)"
    variables = {"SPARK_HOME": str(home)}
    for each in run_program(program, variables=variables).split(" from ")[1:]:
        assert each.startswith(repr(str(home))[:-1])
    ran = ended_program(program, variables={"SPARK_HOME": str(tmp_path)}, code=1)
    assert f"{NO_SPARK.partition(':')[0]} (SPARK_HOME is {tmp_path}, without" in ran.said


@pytest.mark.check
def test_a_zip_of_the_package_has_the_commands(tmp_path, warehouse):
    zipped = shutil.make_archive(
        str(tmp_path / "frazil"), "zip", Path(frazil.__file__).parents[1], "frazil"
    )
    tables = f"--warehouse {warehouse} tables"
    said = {"--version": FRAZIL_VERSION, "--help": "Look at tables", tables: "db"}
    for words, expected in said.items():
        code = f"import sys; sys.path.insert(0, {zipped!r})\n{RUNS.format(words=words.split())}"
        *shown, modules = run_program(code + "print(frazil.__file__)", cwd=tmp_path).splitlines()
        assert expected in "\n".join(shown)
        assert modules.startswith(zipped)
