"""A statement that fails at its last row changes nothing and leaves no file."""

from __future__ import annotations

from pathlib import Path

import pytest
from failing_statements import BEFORE, FAILING, files_below
from sql_cases import state_of

from ci_share import in_circles


@pytest.fixture(scope="module")
def filled(shared_lake):
    """A lake with the tables that the statements are about."""
    for text in BEFORE:
        shared_lake.sql(text.format(db="db"))
    return shared_lake


def by_the_lake(lake, text):
    lake.sql(text.format(db="db"))


def attached(lake, text):
    lake.attach(name="lake")
    try:
        lake.spark.sql(text.format(db="lake.db"))
    finally:
        lake.detach()


# Of a statement that has several forms `make test` takes the first.
FORMS = sorted(FAILING, key=lambda name: "," in name)
FIRST = sum("," not in name for name in FORMS)
RUNS = [(run, name) for run in (by_the_lake, attached) for name in FORMS]


@pytest.mark.parametrize(
    ("run", "name"), in_circles(RUNS, test=FIRST, check=len(FORMS) - FIRST + 4)
)
def test_a_statement_that_fails_leaves_nothing(filled, run, name):
    """Neither a row, nor metadata, nor a file or a folder."""
    folder = Path(filled.catalog.properties["warehouse"])
    before = files_below(folder), state_of(filled)
    with pytest.raises(Exception, match="boom"):
        run(filled, FAILING[name])
    assert files_below(folder) == before[0]
    assert state_of(filled) == before[1]
    left = filled.sql("SELECT n FROM db.t UNION SELECT n FROM db.m").collect()
    assert left == [("old",)]
