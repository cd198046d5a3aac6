"""What Spark does with tables that are loaded with their referenced snapshots alone."""

import pytest
from catalog_cases import REFERENCED, rest_properties

import frazil
from ci_share import these


@pytest.fixture
def properties(tmp_path):
    """The properties of a client that loads tables in this way."""
    with rest_properties(tmp_path, REFERENCED) as found:
        yield found


@pytest.fixture
def lake_settings(properties):
    return {**properties, "name": "lake"}


def rows(frame):
    return sorted((r["id"], r["v"]) for r in frame.collect())


def frame(spark, *given):
    return spark.createDataFrame(given, "id bigint, v string")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("version", "mode"),
    these(
        [(3, "merge-on-read")],
        *([1, 2, 3], ["copy-on-write", "merge-on-read"]),
    ),
)
def test_a_history_of_commands(lake, spark, properties, version, mode):
    """Each command begins with a table that was just loaded, as in a process of its own."""
    modes = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    if version == 1:
        modes = {}
    lake.create_table("db.t", "id bigint, v string", format_version=version, properties=modes)

    def table():
        # Commits keep what they are answered with: every snapshot of the table.
        lake.catalog.caches.clear()
        found = lake.load_table("db.t")
        assert len(found.metadata.snapshots_at_hand) <= 2
        return found

    table().append(frame(spark, (1, "a"), (2, "b"), (3, "c")))
    table().append(frame(spark, (4, "d")))
    table().create_tag("first")
    table().delete("id = 2")
    table().update({"v": "upper(v)"}, where="id = 3")
    source = frame(spark, (3, "x"), (5, "e"))
    table().merge(
        source, on="target.id = source.id"
    ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    expected = [(1, "a"), (3, "x"), (4, "d"), (5, "e")]
    assert rows(table().to_df()) == expected
    first = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert rows(table().scan(ref="first").to_df()) == first
    with frazil.connect(
        spark, **{**properties, "snapshot-loading-mode": "all"}, name="whole"
    ) as whole:
        every = [each.snapshot_id for each in whole.load_table("db.t").metadata.snapshots]
    assert len(every) == 5
    states = [first[:3], first, first[:1] + first[2:]]
    for snapshot_id, state in zip(every, states, strict=False):
        assert rows(table().scan(snapshot_id=snapshot_id).to_df()) == state
    assert [each.snapshot_id for each in reversed(table().ancestors())] == every
    assert table().history().count() == 5
    changes = table().changes(every[1])
    kinds = sorted((r["_change_type"], r["id"], r["v"]) for r in changes.collect())
    assert ("INSERT", 5, "e") in kinds
    assert ("DELETE", 2, "b") in kinds
    table().rollback_to_snapshot(every[2])
    assert rows(table().to_df()) == states[2]
    table().maintenance.expire_snapshots(older_than="2100-01-01 00:00:00")
    left = {every[1], every[2]}
    assert {each.snapshot_id for each in table().metadata.snapshots} == left
    assert rows(table().to_df()) == states[2]
    table().compact(rewrite_all=True)
    assert rows(table().to_df()) == states[2]


def test_two_writers_of_one_table(lake, spark, properties):
    """A rival's snapshots that are not at hand are found when a commit is tried again."""
    lake.create_table(
        "db.t", "id bigint, v string", properties={"write.delete.mode": "merge-on-read"}
    )
    lake.load_table("db.t").append(frame(spark, (1, "a"), (2, "b"), (3, "c")))
    lake.catalog.caches.clear()
    late = lake.load_table("db.t")
    with frazil.connect(spark, **properties, name="rival") as other:
        rival = other.load_table("db.t")
        rival.append(frame(spark, (4, "d")))
        rival.delete("id = 1")
    with lake.transaction() as changes:
        changes.table("db.t").delete("id = 2")
    late.append(frame(spark, (5, "e")))
    late.delete("id = 3")
    assert rows(late.to_df()) == [(4, "d"), (5, "e")]
