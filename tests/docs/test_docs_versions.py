"""What is said of Sparks and Pythons is what ran on them."""

from __future__ import annotations

import re
import tomllib

import pytest
import versions
from pages import ROOT

from frazil.cli.commands.setup.versions import TESTED_PYTHONS, TESTED_SPARKS

SHOWN = re.compile(
    r"<!-- versions: scripts/versions.py table -->\n(.*?)<!-- versions end -->", re.S
)
PASSED = [each for each in versions.recorded() if not each.failed]


@pytest.mark.parametrize("page", ["README.md", "docs/howto/managed-spark.md"])
def test_a_page_shows_the_table_of_what_ran(page):
    assert SHOWN.findall((ROOT / page).read_text()) == [f"\n{versions.table()}\n"]


def test_classifiers_and_the_doctor_name_each_python_and_spark_that_tests_passed_on():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    pythons = {each.cell[1] for each in PASSED}
    sparks = {each.cell[0] for each in PASSED}
    assert set(stated) == {".".join(map(str, each)) for each in TESTED_PYTHONS} >= pythons
    assert set(versions.SPARKS) == {".".join(map(str, each)) for each in TESTED_SPARKS} >= sparks


def test_a_commit_chooses_a_spark_or_a_python_that_is_not_everydays():
    pythons = ["3.11", "3.13"]
    chosen = {versions.cell_of_commit(f"{n:x}", pythons) for n in range(100)}
    every = {(spark, python) for spark in versions.SPARKS for python in pythons}
    assert chosen == every - {(versions.EVERYDAY, "3.11")}


def test_what_failed_runs_again_and_counts_beside_what_passed(tmp_path):
    told = tmp_path / "told.xml"
    told.write_text(
        '<testsuites><testsuite><testcase classname="tests.a.test_b" name="test_c[d-1]"><failure/>'
        '</testcase><testcase classname="tests.a.test_b" name="test_e"/><testcase name="test_f">'
        "<skipped/></testcase></testsuite></testsuites>"
    )
    before = versions.suite_of(told)
    assert versions.failed_cases(before) == ["tests/a/test_b.py::test_c[d-1]"]
    told.write_text(
        '<testsuites><testsuite><testcase name="test_c[d-1]"/></testsuite></testsuites>'
    )
    for suite in (versions.with_passed(before, told), versions.suite_of(told)):
        ran = versions.ran_as_told(suite, "4.0.5", "3.12.1", versions.ALL)
        assert (ran.passed, ran.skipped, ran.failed) == (2, 1, 0)
