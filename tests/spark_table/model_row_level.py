"""Deletes, updates, merges and upserts as steps of a random history, and what they do to dicts."""

from __future__ import annotations

from frazil.errors import ConflictError

COMMANDS = ("delete", "update", "merge")


def kind_of(name):
    """A renamed column keeps the first part of its name."""
    return name.split("_")[0]


def name_of(model, kind):
    """What the column of that kind is called now."""
    return next(name for name in model.columns if kind_of(name) == kind)


def predicates(model):
    """SQL text, and the same over a row of ids: True, False or None, as SQL says."""
    r = model.random
    city, n = name_of(model, "city"), name_of(model, "n")
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


def choose_modes(spark, table, model):
    """How each command writes from here on."""
    modes = {
        f"write.{command}.mode": model.random.choice(["copy-on-write", "merge-on-read"])
        for command in COMMANDS
    }
    granularity = model.random.choice(["file", "partition"])
    table.set_properties({**modes, "write.delete.granularity": granularity})


def append(spark, table, model):
    """Rows of new keys."""
    rows = model.new_rows()
    table.append(model.frame(spark, rows))
    model.rows = model.rows + model.by_id(rows)


def delete(spark, table, model):
    text, matches = predicates(model)
    table.delete(text)
    model.rows = [row for row in model.rows if matches(row) is not True]


def update(spark, table, model):
    """Some rows move to another partition, others count."""
    text, matches = predicates(model)
    city, n = name_of(model, "city"), name_of(model, "n")
    letter = model.random.choice("abc")
    if model.random.random() < 0.5:
        table.update({f"`{city}`": f"'{letter}'"}, text)
        change = {model.columns[city]: lambda row: letter}
    else:
        table.update({f"`{n}`": f"`{n}` + 1"}, text)
        counted = model.columns[n]
        change = {counted: lambda row: None if row.get(counted) is None else row[counted] + 1}

    def after(row):
        if matches(row) is not True:
            return row
        return {**row, **{column: value(row) for column, value in change.items()}}

    model.rows = [after(row) for row in model.rows]


def source_rows(model):
    """Rows for some keys that the table may have and for some that it lacks.

    What is drawn does not depend on the rows: a step may be played again on others.
    """
    last = model.key
    rows = model.new_rows()
    known = model.random.sample(range(1, last + 1), min(last, len(rows)))
    for row, key in zip(rows, known[: len(rows) // 2 + 1], strict=False):
        row["id"] = key
    return rows


def upsert(spark, table, model):
    rows = source_rows(model)
    table.upsert(model.frame(spark, rows), keys="id")
    given = {row[1]: row for row in model.by_id(rows)}
    model.rows = [row for row in model.rows if row[1] not in given] + list(given.values())


def merge(spark, table, model):
    """A clause of each kind, each with a condition."""
    rows = source_rows(model)
    text, matches = predicates(model)
    city, n = name_of(model, "city"), name_of(model, "n")
    c, k = model.columns[city], model.columns[n]
    letter = model.random.choice("abc")
    (
        table.merge(model.frame(spark, rows), on="target.id = source.id")
        .when_matched_delete(condition=f"source.`{city}` = '{letter}'")
        .when_matched_update({f"`{n}`": f"source.`{n}`"}, condition=f"target.`{city}` is null")
        .when_matched_update_all()
        .when_not_matched_insert_all(condition=f"source.`{n}` is not null")
        .when_not_matched_by_source_delete(condition=text)
        .execute()
    )
    given = {row[1]: row for row in model.by_id(rows)}
    after = []
    for row in model.rows:
        new = given.get(row[1])
        if new is None:
            if matches(row) is not True:
                after.append(row)
        elif new.get(c) == letter:
            continue
        elif row.get(c) is None:
            after.append({**row, k: new.get(k)})
        else:
            after.append(new)
    here = {row[1] for row in model.rows}
    inserted = [row for key, row in given.items() if key not in here and row.get(k) is not None]
    model.rows = after + inserted


def raced(spark, table, model):
    """One command, and before its commit a rival's append or delete, which counts as first."""
    step = model.random.choice([delete, update, merge, upsert])
    first = model.random.choice([append, delete])
    rows, begun = model.rows, model.state()
    first(spark, Unwritten(), model)
    after_rival, between = model.rows, model.state()
    rival = type(table)(spark, table.catalog, table.catalog.load_table(table.identifier))
    real, waits = table.catalog.commit_table, [True]

    def meanwhile():
        waits.clear()
        table.catalog.commit_table = real
        here = model.rows, model.state()
        model.rows = rows
        model.play(begun)
        first(spark, rival, model)
        model.rows = here[0]
        model.play(here[1])

    def commit_table(identifier, requirements, updates, **base):
        meanwhile()
        return real(identifier, requirements, updates, **base)

    model.rows = rows
    table.catalog.commit_table = commit_table
    try:
        step(spark, table, model)
    except ConflictError:
        model.rows = after_rival
    else:
        if waits:
            # It changed nothing, and so it came first.
            meanwhile()
            model.rows = after_rival
        else:
            model.rows = after_rival
            model.play(between)
            step(spark, Unwritten(), model)
    table.refresh()


class Unwritten:
    """A table that takes every change and keeps none."""

    def __getattr__(self, name):
        """Return a method that takes anything; what it returns is this again, as a merge is."""
        return lambda *_, **__: self
