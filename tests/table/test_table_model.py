"""Random sequences of operations against a model of the table: a mapping from files to days."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from table_cases import data_file, head, live_entries, make_table, names, open_catalog, short

from ci_share import examples
from frazil.table.handle import TableHandle
from frazil.table.operations import TableOperations

DAYS = ("mon", "tue", "wed")
Model = dict[str, str]
Effect = Callable[[Model], Model]
KINDS = ["append", "fast", "delete day", "delete file", "overwrite", "replace", "rewrite"]
ONE = st.tuples(st.sampled_from(KINDS), st.sampled_from(DAYS), st.integers(1, 3))
# Steps alone, and transactions of two or three: at some point of them a rival appends to a day.
STEP = st.one_of(
    ONE,
    st.tuples(
        st.lists(ONE, min_size=2, max_size=3),
        st.integers(0, 3),
        st.sampled_from([None, *DAYS]),
    ),
)


def run(
    table: TableOperations, model: Model, step: tuple[str, str, int], number: str
) -> Effect | None:
    """One step on the table; what it does to a model, None where it cannot be done."""
    kind, day, count = step
    new = {f"f{number}-{at}": day for at in range(count)}
    added = [data_file(name, day) for name in new]
    there = {name for name, d in model.items() if d == day}
    one = next(iter(model), None)

    def without_day(now: Model) -> Model:
        return {name: d for name, d in now.items() if d != day}

    steps: dict[str, tuple[Callable[[], None], Effect]] = {
        "append": (lambda: table.files.append(added), lambda now: {**now, **new}),
        "fast": (lambda: table.files.fast_append(added), lambda now: {**now, **new}),
        "delete day": (lambda: table.files.delete(where=f"day = '{day}'"), without_day),
        "overwrite": (
            lambda: table.files.overwrite(added, where=f"day = '{day}'"),
            lambda now: {**without_day(now), **new},
        ),
        "replace": (
            lambda: table.files.replace_partitions(added),
            lambda now: {**without_day(now), **new},
        ),
    }
    if one is not None:
        steps["delete file"] = (
            lambda: table.files.delete(removed=[data_file(one, model[one])]),
            lambda now: {name: d for name, d in now.items() if name != one},
        )
    if there:
        kept = dict(list(new.items())[: len(there)])
        steps["rewrite"] = (
            lambda: table.files.rewrite(
                removed=[data_file(name, day) for name in there],
                added=[data_file(name, day) for name in kept],
                from_snapshot=head(table),
            ),
            lambda now: {**{name: d for name, d in now.items() if name not in there}, **kept},
        )
    if kind not in steps:
        return None
    change, effect = steps[kind]
    change()
    return effect


def run_together(
    table: TableHandle,
    model: Model,
    steps: list[tuple[str, str, int]],
    number: int,
    *,
    rival_at: int,
    rival_day: str | None,
) -> Model:
    """Steps in one transaction, with a rival; the model after both, the rival's commit first."""
    rival = TableHandle(table.catalog, table.catalog.load_table(table.identifier))
    visible, after = dict(model), dict(model)
    if rival_day is not None:
        after[f"r{number}"] = rival_day
    with table.transaction() as tx:
        for at, step in enumerate(steps):
            if at == rival_at and rival_day is not None:
                rival.files.append([data_file(f"r{number}", rival_day)])
            effect = run(tx, visible, step, f"{number}-{at}")
            if effect is not None:
                visible, after = effect(visible), effect(after)
        if rival_at >= len(steps) and rival_day is not None:
            rival.files.append([data_file(f"r{number}", rival_day)])
    return after


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(STEP, min_size=1, max_size=10),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([2, 3, 100]),
    st.sampled_from(["filesystem", "requirements"]),
)
def test_the_table_holds_what_the_model_holds(
    steps: list[Any], version: int, min_count: int, kind: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        properties = {"commit.manifest.min-count-to-merge": str(min_count)}
        table = make_table(open_catalog(kind, folder), version=version, properties=properties)
        model: Model = {}
        for number, step in enumerate(steps):
            if isinstance(step[0], str):
                effect = run(table, model, step, str(number))
                model = model if effect is None else effect(model)
            else:
                steps_together, rival_at, rival_day = step
                model = run_together(
                    table,
                    model,
                    steps_together,
                    number,
                    rival_at=rival_at,
                    rival_day=rival_day,
                )
                table.refresh()
            summary = dict(table.current_snapshot.summary) if table.current_snapshot else {}
            assert int(summary.get("total-data-files", 0)) == len(model)
            numbers = [s.sequence_number for s in table.metadata.snapshots]
            assert numbers == (
                [0] * len(numbers) if version == 1 else list(range(1, len(numbers) + 1))
            )
        files = table.inspect.files()
        found = dict(zip(map(short, files["file_path"]), files["partition"], strict=True))
        assert {name: value["day"] for name, value in found.items()} == model
        if version < 3:
            assert names(table) == sorted(model)
            live = live_entries(table)
            number_of = {s.snapshot_id: s.sequence_number for s in table.metadata.snapshots}
            assert all(e.file_sequence_number == number_of[e.snapshot_id] for e in live)
            return
        ranges = sorted(
            (start, start + rows)
            for start, rows in zip(files["first_row_id"], files["record_count"], strict=True)
        )
        ends = [0, *(end for _, end in ranges)]
        assert all(start >= end for (start, _), end in zip(ranges, ends, strict=False))
        assert ends[-1] <= table.metadata.next_row_id
