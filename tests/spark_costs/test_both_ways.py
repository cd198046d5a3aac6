"""Each figure of `costs` that chooses between two ways: both give the rows that are to be there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from tests.spark_costs import changing_ways, reading_ways
from tests.spark_costs.ways import Case, Figures, Place, set_figures

import frazil
from ci_share import in_circles
from frazil.spark.session import costs

TESTS = Path(__file__).parent.parent

FIRST = (reading_ways.DELETED[0], *changing_ways.COMMANDS[:2])
"""Those of `make test`: rows that wrongly stay or go do most harm."""

EVERY = (*changing_ways.CASES, *reading_ways.CASES)
CASES = [*FIRST, *(case for case in EVERY if case not in FIRST)]

ELSEWHERE = {
    "EVEN_ROUNDS": ("spark_read/test_spark_read_file_log.py",
                    "test_few_tasks_are_as_many_for_each_core"),
}  # fmt: skip
"""Figures of which another test runs both ways."""

NOT_CHOICES = {
    "MOST_TASKS": "a bound of tasks",
    "COLUMNS_OF_A_FOOTER": "a weight",
    "LABELLED": "a weight",
    "WORDS_OF_A_FILE": "a weight",
    "EARLIER_ROWS_OF_A_WORD": "a weight",
    "FILES_OF_A_CHECK": "work of a job",
    "PATHS_A_BUCKET": "work of a task",
    "WORDS_A_TASK": "work of a task",
    "CHANGED_ROWS_A_TASK": "work of a task",
    "KEYS_A_TASK": "work of a task",
    "CHANGES_A_TASK": "work of a task",
    "SHUFFLE_PARTS": "parts of a shuffle",
    "MOST_NAMED": "the length of a result",
    "SAMPLED_FILES": "the size of a sample",
    "SAMPLED_ROWS": "the size of a sample",
    "SAMPLE": "the size of a sample",
    "OPEN_COST": "Spark's own",
    "SPLIT": "Spark's own",
    "PACKING": "Spark's own",
}
"""Figures that choose no way, and what they are."""


@pytest.fixture(scope="module")
def place(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A lake of this module."""
    folder = tmp_path_factory.mktemp("ways")
    with frazil.connect(spark, warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        yield Place(lake, folder)


def told_by(case: Case, figures: Figures, place: Place, patch: pytest.MonkeyPatch) -> Any:
    """What the work tells by one way, after a look at the rows, and the sign of the way."""
    work, calls = case.scenario(place, **case.arguments), list[bool]()
    set_figures(figures, patch.setattr)
    if isinstance(case.sign, str):
        function = resolve_name(case.sign)

        def seen(*args: Any, **more: Any) -> Any:
            calls.append(True)
            return function(*args, **more)

        patch.setattr(case.sign, seen)
    done = work.run()
    sign = case.sign(done) if callable(case.sign) else bool(calls)
    told = work.told(done)
    assert told == work.expected()
    return sign


def named(case: Case) -> Any:
    """A case as a parameter."""
    return pytest.param(case, id=f"{case}: {case.scenario.__name__}")


@pytest.mark.parametrize("case", in_circles(map(named, CASES), test=3, check=20))
def test_both_ways_give_the_rows_that_are_to_be_there(
    place: Place, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    signs = []
    for figures in (case.up_to, *map(case.beyond, case.figures)):
        with monkeypatch.context() as patch:
            sign = told_by(case, figures, place, patch)
        signs.append(sign)
        if isinstance(case.sign, str):
            assert sign == case.is_called(figures), figures
    # What tells the ways apart is another thing beyond each figure.
    assert case.sign is None or signs[0] not in signs[1:]


def test_each_figure_is_run_both_ways_or_chooses_none() -> None:
    names = {name for name in vars(costs) if name.isupper()}
    run = {name for case in CASES for name in case.figures} | ELSEWHERE.keys()
    assert run | NOT_CHOICES.keys() == names
    assert not run & NOT_CHOICES.keys()
    for name, (path, function) in ELSEWHERE.items():
        assert f"def {function}(" in (TESTS / path).read_text(), name


def test_the_functions_that_tell_of_a_way_are_there() -> None:
    assert all(callable(resolve_name(each.sign)) for each in CASES if isinstance(each.sign, str))
