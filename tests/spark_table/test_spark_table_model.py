"""Random operations against a list of dicts: every snapshot, as it was and as it is read later."""

from __future__ import annotations

import random

import pytest
from table_rows import in_order

from ci_share import only_in_soak
from frazil.errors import ConflictError

pytestmark = pytest.mark.spark

TYPES = {"id": "bigint", "city": "string", "n": "int", "x": "double", "extra": "string"}
STEPS = 14


class Model:
    """What the table should hold, by column id, and every state it has had."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.columns = {"id": 1, "city": 2, "n": 3}
        self.rows = []
        self.moments = {}
        self.next_id = 4
        self.key = 0

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

    def shown(self, rows, columns):
        """Rows of ids as sorted tuples in the order of the columns."""
        tuples = [tuple(row.get(column) for column in columns.values()) for row in rows]
        return sorted(tuples, key=in_order)


def kind_of(name):
    """A renamed column keeps the first part of its name."""
    return name.split("_")[0]


def predicates(model):
    """SQL text, and the same over a row of ids: True, False or None, as SQL says."""
    r = model.random
    city = next(name for name in model.columns if kind_of(name) == "city")
    n = next(name for name in model.columns if kind_of(name) == "n")
    c, k = model.columns[city], model.columns[n]
    limit = r.randrange(1, model.key + 2)
    letter, number = r.choice("abc"), r.randrange(5)

    def known(value, test):
        return None if value is None else test(value)

    return r.choice(
        [
            (f"id < {limit}", lambda row: row[1] < limit),
            (f"{city} = '{letter}'", lambda row: known(row.get(c), lambda v: v == letter)),
            (f"{city} <> '{letter}'", lambda row: known(row.get(c), lambda v: v != letter)),
            (f"{city} is null", lambda row: row.get(c) is None),
            (f"not {n} > {number}", lambda row: known(row.get(k), lambda v: v <= number)),
            (
                f"{n} in (1, 2) and id >= {limit}",
                lambda row: row.get(k) in (1, 2) and row[1] >= limit,
            ),
        ]
    )


def frame_of(spark, model, rows):
    ddl = ", ".join(f"`{name}` {TYPES[kind_of(name)]}" for name in model.columns)
    return spark.createDataFrame([tuple(row.values()) for row in rows], ddl)


def append(spark, table, model):
    rows = model.new_rows()
    table.append(frame_of(spark, model, rows))
    model.rows = model.rows + model.by_id(rows)


def overwrite(spark, table, model):
    text, matches = predicates(model)
    rows = model.new_rows() if model.random.random() < 0.7 else []
    table.overwrite(frame_of(spark, model, rows), where=text)
    kept = [row for row in model.rows if matches(row) is not True]
    model.rows = kept + model.by_id(rows)


def overwrite_partitions(spark, table, model):
    """Only while every file is of one spec: files of older specs stay, and the model has none."""
    if len(table.specs) > 1 or not table.spec.fields:
        return
    rows = model.new_rows()
    table.overwrite_partitions(frame_of(spark, model, rows))
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
    city = next(name for name in model.columns if kind_of(name) == "city")
    with table.update_partitioning() as change:
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
    steps = model.random.choices([append, overwrite], k=model.random.randrange(2, 4))
    try:
        with table.transaction() as tx:
            for place, step in enumerate(steps):
                if place == moment:
                    type(table)(spark, table.catalog, rival).append(frame_of(spark, model, others))
                # The step's own choices, replayed on the rows with those of the other writer.
                state = model.random.getstate(), model.key
                step(spark, tx, model)
                seen, model.rows = model.rows, after
                model.random.setstate(state[0])
                model.key = state[1]
                step(spark, Unwritten(), model)
                after, model.rows = model.rows, seen
        model.rows = after
    except ConflictError:
        model.rows = [*before, *others_rows]
    table.refresh()


class Unwritten:
    """A table that takes every write and keeps none."""

    def append(self, df):
        """Do nothing."""

    def overwrite(self, df, *, where):
        """Do nothing."""


OPERATIONS = [append, append, overwrite, overwrite, overwrite_partitions, together, together,
              evolve_schema, evolve_spec, roll_back]  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "version", "partition_by"),
    [(1, 2, ["city"]), (2, 3, []), only_in_soak(3, 1, ["city"]), only_in_soak(4, 3, ["city"])],
)
def test_random_operations(lake, spark, seed, version, partition_by):
    model = Model(seed)
    table = lake.create_table(
        "db.t", "id bigint, city string, n int", partition_by=partition_by, format_version=version
    )
    done = []
    for _ in range(STEPS):
        operation = model.random.choice(OPERATIONS) if model.moments else append
        operation(spark, table, model)
        done.append(operation.__name__)
        got = sorted((tuple(row) for row in table.to_df().collect()), key=in_order)
        assert got == model.shown(model.rows, model.columns), (seed, done)
        current = table.current_snapshot.snapshot_id
        if current not in model.moments:
            model.moments[current] = (dict(model.columns), list(model.rows))
    for snapshot_id, (columns, rows) in model.moments.items():
        df = table.scan(snapshot_id=snapshot_id).to_df()
        assert df.columns == list(columns)
        got = sorted((tuple(row) for row in df.collect()), key=in_order)
        assert got == model.shown(rows, columns), (seed, done, snapshot_id)
