"""Random sequences of operations against a model of the table: a mapping from files to days."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_cases import data_file, head, live_entries, make_table, names, open_catalog, short

from ci_share import examples
from frazil.table.handle import TableHandle

DAYS = ("mon", "tue", "wed")
Model = dict[str, str]
STEP = st.tuples(
    st.sampled_from(
        ["append", "fast", "delete day", "delete file", "overwrite", "replace", "rewrite"]
    ),
    st.sampled_from(DAYS),
    st.integers(1, 3),
)


def run(table: TableHandle, model: Model, step: tuple[str, str, int], number: int) -> Model:
    """One step on the table; the model after it."""
    kind, day, count = step
    new = {f"f{number}-{at}": day for at in range(count)}
    added = [data_file(name, day) for name in new]
    there = {name: d for name, d in model.items() if d == day}
    others = {name: d for name, d in model.items() if d != day}
    one = next(iter(model), None)
    steps: dict[str, tuple[Callable[[], None], Model]] = {
        "append": (lambda: table.commit_append(added), {**model, **new}),
        "fast": (lambda: table.commit_fast_append(added), {**model, **new}),
        "delete day": (lambda: table.commit_delete(where=f"day = '{day}'"), others),
        "overwrite": (
            lambda: table.commit_overwrite(added, where=f"day = '{day}'"),
            {**others, **new},
        ),
        "replace": (lambda: table.commit_replace_partitions(added), {**others, **new}),
    }
    if one is not None:
        steps["delete file"] = (
            lambda: table.commit_delete(removed=[data_file(one, model[one])]),
            {name: d for name, d in model.items() if name != one},
        )
    if there:
        kept = dict(list(new.items())[: len(there)])
        steps["rewrite"] = (
            lambda: table.commit_rewrite(
                removed=[data_file(name, day) for name in there],
                added=[data_file(name, day) for name in kept],
                from_snapshot=head(table),
            ),
            {**others, **kept},
        )
    if kind not in steps:
        return model
    change, after = steps[kind]
    change()
    return after


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(STEP, min_size=1, max_size=10),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([2, 3, 100]),
)
def test_the_table_holds_what_the_model_holds(
    steps: list[tuple[str, str, int]], version: int, min_count: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        properties = {"commit.manifest.min-count-to-merge": str(min_count)}
        table = make_table(
            open_catalog("filesystem", folder), version=version, properties=properties
        )
        model: Model = {}
        for number, step in enumerate(steps):
            model = run(table, model, step, number)
            summary = dict(table.current_snapshot.summary) if table.current_snapshot else {}
            assert int(summary.get("total-data-files", 0)) == len(model)
        files = table.inspect.files()
        found = dict(zip(map(short, files["file_path"]), files["partition"], strict=True))
        assert {name: value["day"] for name, value in found.items()} == model
        if version < 3:
            assert names(table) == sorted(model)
            live = live_entries(table)
            numbers = {s.snapshot_id: s.sequence_number for s in table.snapshot_list}
            assert all(e.file_sequence_number == numbers[e.snapshot_id] for e in live)
            return
        ranges = sorted(
            (start, start + rows)
            for start, rows in zip(files["first_row_id"], files["record_count"], strict=True)
        )
        ends = [0, *(end for _, end in ranges)]
        assert all(start >= end for (start, _), end in zip(ranges, ends, strict=False))
        assert ends[-1] <= table.metadata.next_row_id
