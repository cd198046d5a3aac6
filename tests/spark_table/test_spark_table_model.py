"""Random operations against a list of dicts: every snapshot, as it was and as it is read later."""

from __future__ import annotations

import random

import pytest
from model_row_level import (
    Unwritten,
    append,
    choose_modes,
    delete,
    kind_of,
    merge,
    name_of,
    predicates,
    raced,
    update,
    upsert,
)
from table_rows import in_order

from ci_share import only_in_soak
from frazil.errors import ConflictError

pytestmark = [pytest.mark.spark, pytest.mark.check]

TYPES = {"id": "bigint", "city": "string", "n": "int", "x": "double", "extra": "string"}
STEPS = 16


class Model:
    """What the table should hold, by column id, and every state it has had."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.columns = {"id": 1, "city": 2, "n": 3}
        self.rows = []
        self.moments = {}
        self.next_id = 4
        self.key = 0

    def state(self):
        """Where the choices are."""
        return self.random.getstate(), self.key

    def play(self, state):
        """Make the same choices again from there on."""
        self.random.setstate(state[0])
        self.key = state[1]

    def new_rows(self):
        """Rows for all columns, some of them null."""
        made = []
        for _ in range(self.random.randrange(1, 6)):
            self.key += 1
            values = {
                "id": self.key,
                "city": self.random.choice(["a", "b", "c", None]),
                "n": self.random.choice([None, *range(5)]),
                "x": self.random.choice([None, 0.5, 2.5]),
                "extra": self.random.choice(["p", "q", None]),
            }
            made.append({name: values[kind_of(name)] for name in self.columns})
        return made

    def by_id(self, rows):
        return [{self.columns[name]: value for name, value in row.items()} for row in rows]

    def frame(self, spark, rows):
        """The rows as a DataFrame."""
        ddl = ", ".join(f"`{name}` {TYPES[kind_of(name)]}" for name in self.columns)
        return spark.createDataFrame([tuple(row.values()) for row in rows], ddl)

    def shown(self, rows, columns):
        """Rows of ids as sorted tuples in the order of the columns."""
        tuples = [tuple(row.get(column) for column in columns.values()) for row in rows]
        return sorted(tuples, key=in_order)


def overwrite(spark, table, model):
    text, matches = predicates(model)
    rows = model.new_rows() if model.random.random() < 0.7 else []
    table.overwrite(model.frame(spark, rows), where=text)
    kept = [row for row in model.rows if matches(row) is not True]
    model.rows = kept + model.by_id(rows)


def overwrite_partitions(spark, table, model):
    """Only while every file is of one spec: files of older specs stay, and the model has none."""
    if len(table.specs) > 1 or not table.spec.fields:
        return
    rows = model.new_rows()
    table.overwrite_partitions(model.frame(spark, rows))
    new = model.by_id(rows)
    touched = {row.get(2) for row in new}
    model.rows = [row for row in model.rows if row.get(2) not in touched] + new


def evolve_schema(spark, table, model):
    with table.update_schema() as change:
        kind = model.random.choice(["add", "rename", "drop"])
        extras = [name for name in model.columns if kind_of(name) in ("x", "extra")]
        if kind == "drop" and extras:
            change.delete_column(extras[0])
            gone = model.columns.pop(extras[0])
            model.rows = [{k: v for k, v in row.items() if k != gone} for row in model.rows]
        elif kind == "rename":
            name = model.random.choice([name for name in model.columns if name != "id"])
            new = f"{kind_of(name)}_{model.next_id}_{len(model.moments)}"
            change.rename_column(name, new)
            model.columns = {(new if k == name else k): v for k, v in model.columns.items()}
        else:
            free = [n for n in ("x", "extra") if n not in map(kind_of, model.columns)]
            if not free:
                return
            change.add_column(free[0], TYPES[free[0]])
            model.columns[free[0]] = model.next_id
            model.next_id += 1


def evolve_spec(spark, table, model):
    if len(table.specs) > 1:
        return
    city = name_of(model, "city")
    with table.update_spec() as change:
        change.add_field(model.random.choice(["bucket(2, id)", f"truncate(1, `{city}`)"]))


def roll_back(spark, table, model):
    chain = [s.snapshot_id for s in table.ancestors()][1:]
    chosen = [sid for sid in chain if sid in model.moments]
    if not chosen:
        return
    target = model.random.choice(chosen)
    table.rollback_to_snapshot(target)
    ids = set(model.columns.values())
    model.rows = [{k: v for k, v in row.items() if k in ids} for row in model.moments[target][1]]


def together(spark, table, model):
    """Two or three writes in one commit; another writer appends in between, and counts as first.

    Rows of the other writer of which only some match make a conflict: then only they are there.
    """
    others = model.new_rows()
    others_rows = model.by_id(others)
    rival = table.catalog.load_table(table.identifier)
    before, moment = list(model.rows), model.random.randrange(2)
    after = [*model.rows, *others_rows]
    steps = model.random.choices(
        [append, overwrite, delete, update, merge, upsert], k=model.random.randrange(2, 4)
    )
    try:
        with table.transaction() as tx:
            for place, step in enumerate(steps):
                if place == moment:
                    type(table)(spark, table.catalog, rival).append(model.frame(spark, others))
                # The step's own choices, replayed on the rows with those of the other writer.
                state = model.state()
                step(spark, tx, model)
                seen, model.rows = model.rows, after
                model.play(state)
                step(spark, Unwritten(), model)
                after, model.rows = model.rows, seen
        model.rows = after
    except ConflictError:
        model.rows = [*before, *others_rows]
    table.refresh()


OPERATIONS = [append, overwrite, overwrite_partitions, delete, update, merge, upsert, together,
              together, raced, raced, choose_modes, evolve_schema, evolve_spec,
              roll_back]  # fmt: skip
# Within these a key may go and come back with another row.
MAKES_ROWS_ANEW = (together, raced, roll_back)


def row_ids(table):
    """The row id of each key."""
    rows = table.scan(columns=["id", "_row_id"]).to_df().collect()
    found = {row[0]: row[1] for row in rows}
    assert None not in found.values()
    assert len(set(found.values())) == len(rows)
    return found


@pytest.mark.parametrize(
    ("seed", "version", "partition_by", "steps"),
    [
        (1, 2, ["city"], 10),
        (2, 3, [], 10),
        only_in_soak(3, 1, ["city"], STEPS),
        only_in_soak(1, 2, ["city"], STEPS),
        only_in_soak(2, 3, [], STEPS),
        *(only_in_soak(seed, 2 + seed % 2, ["city"], STEPS) for seed in range(4, 12)),
        *(only_in_soak(seed, 2 + seed % 2, [], STEPS) for seed in range(12, 16)),
    ],
)
def test_random_operations(lake, spark, seed, version, partition_by, steps):
    model = Model(seed)
    table = lake.create_table(
        "db.t", "id bigint, city string, n int", partition_by=partition_by, format_version=version
    )
    choose_modes(spark, table, model)
    done, ids = [], {}
    for _ in range(steps):
        operation = model.random.choice(OPERATIONS) if model.moments else append
        operation(spark, table, model)
        done.append(operation.__name__)
        got = sorted((tuple(row) for row in table.to_df().collect()), key=in_order)
        assert got == model.shown(model.rows, model.columns), (seed, done)
        if version == 3:
            before, ids = ids, row_ids(table)
            kept = before.keys() & ids.keys() if operation not in MAKES_ROWS_ANEW else ()
            assert all(before[key] == ids[key] for key in kept), (seed, done)
        current = table.current_snapshot.snapshot_id
        if current not in model.moments:
            model.moments[current] = (dict(model.columns), list(model.rows))
    for snapshot_id, (columns, rows) in model.moments.items():
        df = table.scan(snapshot_id=snapshot_id).to_df()
        assert df.columns == list(columns)
        got = sorted((tuple(row) for row in df.collect()), key=in_order)
        assert got == model.shown(rows, columns), (seed, done, snapshot_id)
