"""What changes do to plain rows, one after the other in the order of their snapshots."""

from __future__ import annotations

from collections import Counter

DDL = "id bigint not null, p string, n int, v string"


def condition_text(where):
    """A condition as SQL text."""
    parts = [f"id between {where['low']} and {where['high']}"]
    if "p" in where:
        parts.append(f"p = '{where['p']}'")
    return " and ".join(parts)


def matches(where, row):
    return where["low"] <= row[0] <= where["high"] and where.get("p", row[1]) == row[1]


def effect(change, rows):
    """The rows that go and those that come, of a change that sees these rows."""
    gone, new = Counter(), Counter()
    given = [tuple(row) for row in change.get("rows", ())]
    match change["kind"]:
        case "append":
            new.update(given)
        case "by key":
            keys = {row[:2] for row in given}
            gone.update({row: n for row, n in rows.items() if row[:2] in keys})
            new.update(given)
        case "delete" | "overwrite":
            gone.update({row: n for row, n in rows.items() if matches(change["where"], row)})
            new.update(given)
        case "update":
            for row, n in rows.items():
                if matches(change["where"], row):
                    gone[row] += n
                    new[(row[0], row[1], row[2] + 1, change["op"])] += n
        case "merge":
            by_key = {row[0]: row for row in given}
            others = change["others"]
            for row, n in rows.items():
                source = by_key.get(row[0])
                if source is None:
                    if others is not None and row[1:3] == (others["p"], others["n"]):
                        gone[row] += n
                    continue
                limit = change["deletes_from"]
                if limit is not None and row[2] >= limit:
                    gone[row] += n
                elif change["updates"]:
                    gone[row] += n
                    new[source] += n
            if change["inserts"]:
                here = {row[0] for row in rows}
                new.update(row for key, row in by_key.items() if key not in here)
    return gone, new


def after(rows, gone, new):
    """Rows without those that go and with those that come.

    Raises:
        AssertionError: a row that goes is not there: two have changed it.
    """
    missing = gone - rows
    assert not missing, f"changed twice: {dict(missing)}"
    return rows - gone + new
