"""Writes of deletes by either way."""

from contextlib import contextmanager

import pytest

from frazil.planning.plan import plan as plan_of
from frazil.spark.delete_files.write import write_deletes
from frazil.spark.session import costs


@pytest.fixture
def way(monkeypatch):
    """Makes writes of deletes take one of three ways."""

    @contextmanager
    def take(name):
        with monkeypatch.context() as patch:
            if name != "driver":
                patch.setattr(costs, "DELETED_ROWS", 0)
                patch.setattr(costs, "WORDS_A_TASK", 1)
                patch.setattr(costs, "WORDS_OF_A_FILE", 1)
            if name == "kept by executors":
                patch.setattr(costs, "WORDS_HERE", 0)
            yield

    return take


@pytest.fixture
def places(spark):
    """Rows of (ordinal, position), as a query gives them: in no order, some twice."""

    def made(pairs):
        twice = [*pairs, *pairs[:3]]
        return spark.createDataFrame(twice[::-1], "file bigint, `a row` bigint").repartition(3)

    return made


@pytest.fixture
def planned():
    """The plan of a table's current snapshot, and each file's ordinal by path."""

    def found(table):
        made = plan_of(table.refresh().metadata, table.current_snapshot, table.io)
        return made, dict(zip(made.files["file_path"], made.files["ordinal"], strict=True))

    return found


@pytest.fixture
def write(places, planned):
    """Writes deletes of the places of a table's files, which are given by path."""

    def made(table, wanted, *, io=None, **more):
        plan, ordinals = planned(table)
        rows = places(
            [(ordinals[path], n) for path, found in wanted.items() for n in sorted(found)]
        )
        return write_deletes(rows, plan=plan, metadata=table.metadata, io=io or table.io, **more)

    return made
