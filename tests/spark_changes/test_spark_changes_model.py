"""Changelogs of random histories against rows kept in memory."""

from __future__ import annotations

import random

import pytest
from changes_model import History, Model, collected

from ci_share import these

pytestmark = pytest.mark.spark

KINDS = [(2, False), (2, True), (3, False), (3, True)]


def check(model, start, end):
    first = None if start < 0 else model.ids[start]
    last = model.ids[end]
    assert collected(model.table.changes(first, last)) == model.changelog(start, end)
    assert collected(model.table.net_changes(first, last)) == model.net(start, end)


@pytest.mark.check
@pytest.mark.parametrize(("version", "partitioned"), these([(2, True)], (2, 3), (True, False)))
def test_changes_between_snapshots_are_the_differences_of_their_rows(
    lake, tmp_path, version, partitioned
):
    model = Model(lake, tmp_path / "files", version=version, partitioned=partitioned)
    seed = version * 10 + partitioned
    History(model, seed).run(7)
    check(model, -1, len(model.ids) - 1)
    start, end = sorted(random.Random(seed).sample(range(len(model.ids)), 2))
    check(model, start, end)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
def test_changes_between_every_two_snapshots(lake, tmp_path, seed):
    version, partitioned = KINDS[seed % 4]
    model = Model(lake, tmp_path / "files", version=version, partitioned=partitioned)
    History(model, 1000 + seed).run(6)
    for start in range(-1, len(model.ids)):
        for end in range(max(start, 0), len(model.ids)):
            check(model, start, end)
