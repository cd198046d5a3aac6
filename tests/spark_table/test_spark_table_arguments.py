"""Arguments as people write them: one name as text, ids and versions as digits, misspelt names."""

import pytest

from frazil.errors import EvolutionError, NoSuchRefError, PredicateError, ValidationError


@pytest.fixture
def cities(lake, spark):
    """A table of two snapshots, partitioned and sorted by one column each."""
    rows = spark.sql("select 1L as id, 'Oslo' as city, named_struct('x', 1) as point")
    table = lake.create_table_as_select("db.cities", rows, partition_by="city", sort_by="id desc")
    table.append(spark.sql("select 2L as id, 'Rome' as city, named_struct('x', 2) as point"))
    return table


def rows_of(df):
    return sorted(tuple(row) for row in df.collect())


@pytest.mark.check
def test_one_name_stands_for_a_list_of_one(lake, spark, cities):
    assert [field.name for field in cities.spec.fields] == ["city"]
    assert len(cities.sort_order.fields) == 1
    assert rows_of(cities.scan(columns="city").to_df()) == [("Oslo",), ("Rome",)]
    assert rows_of(cities.incremental(columns="id").to_df()) == [(1,), (2,)]
    assert rows_of(cities.scan().aggregate("count(*)", by="city").to_df()) == [
        ("Oslo", 1),
        ("Rome", 1),
    ]
    assert cities.changes(identifier_columns="id").count() == 2
    made = lake.create_table("db.made", "n bigint, ts timestamp", partition_by="day(ts)")
    assert [field.name for field in made.spec.fields] == ["ts_day"]
    made.replace_as_select(spark.range(3), partition_by="bucket(4, id)", sort_by="id")
    assert [field.name for field in made.spec.fields] == ["id_bucket"]
    with made.replace_transaction(cities.schema, partition_by="city", sort_by="city"):
        pass
    assert [field.name for field in made.spec.fields] == ["city"]


def test_what_is_no_name_is_refused_with_its_value(lake, cities):
    calls = [
        lambda: cities.scan(columns=["id", 3]),
        lambda: cities.scan().aggregate(["count(*)"], by=3),
        lambda: cities.changes(identifier_columns=[3]),
        lambda: lake.create_table("db.u", "id bigint", partition_by=[3]),
        lambda: lake.create_table("db.u", "id bigint", sort_by=3),
    ]
    for call in calls:
        with pytest.raises(ValidationError, match=r"holds 3: give a name"):
            call()
    with pytest.raises(ValidationError, match="identifier_columns is empty"):
        cities.changes(identifier_columns=[])


def test_snapshot_ids_are_taken_as_digits(cities):
    first, second = (str(snapshot.snapshot_id) for snapshot in cities.metadata.snapshots)
    assert cities.snapshot(f" {first} ").snapshot_id == int(first)
    assert cities.incremental(first, second).count() == 1
    cities.rollback_to_snapshot(first)
    assert cities.current_snapshot.snapshot_id == int(first)
    expired = cities.maintenance.expire_snapshots(snapshot_ids=second, older_than=0)
    assert expired.snapshot_ids == (int(second),)


WRONG_IDS = {"latest": "'latest'", "²": "'²'", True: "True", 1.5: "1.5", "": "''"}


def test_what_is_no_snapshot_id_is_refused_with_its_value(cities, spark):
    for wrong, shown in WRONG_IDS.items():
        check_refused(calls_with(cities, spark, wrong), shown)


def calls_with(cities, spark, wrong):
    """Calls that take the id, by the name of the argument."""
    return {
        "snapshot_id": [
            lambda: cities.scan(snapshot_id=wrong),
            lambda: cities.snapshot(wrong),
            lambda: cities.rollback_to_snapshot(wrong),
            lambda: cities.set_current_snapshot(wrong),
            lambda: cities.cherrypick_snapshot(wrong),
            lambda: cities.create_branch("b", snapshot_id=wrong),
            lambda: cities.create_tag("b", snapshot_id=wrong),
            lambda: cities.replace_branch("main", snapshot_id=wrong),
            lambda: cities.replace_tag("t", snapshot_id=wrong),
            lambda: cities.files(snapshot_id=wrong),
            lambda: cities.ancestors(wrong),
            lambda: cities.maintenance.remove_statistics(wrong),
            lambda: cities.maintenance.remove_partition_statistics(wrong),
        ],
        "snapshot_ids": [lambda: cities.maintenance.expire_snapshots(snapshot_ids=[wrong])],
        "from_snapshot_id": [
            lambda: cities.changes(from_snapshot_id=wrong),
            lambda: cities.incremental(from_snapshot_id=wrong),
            lambda: cities.read_stream(checkpoint="/nowhere", from_snapshot_id=wrong),
        ],
        "to_snapshot_id": [
            lambda: cities.changes(to_snapshot_id=wrong),
            lambda: cities.net_changes(to_snapshot_id=wrong),
        ],
        "validate_from_snapshot_id": [
            lambda: cities.overwrite(spark.range(1), validate_from_snapshot_id=wrong)
        ],
    }


def check_refused(calls, shown):
    for argument, each in calls.items():
        for call in each:
            with pytest.raises(ValidationError) as refused:
                call()
            assert f"{argument} is {shown}" in str(refused.value)


def test_format_versions_are_taken_as_digits(lake, spark):
    table = lake.create_table("db.v", "id bigint", format_version="2")
    assert table.format_version == 2
    table.upgrade("3")
    assert table.format_version == 3
    made = lake.create_table_as_select("db.w", spark.range(1), format_version="3")
    assert made.format_version == 3
    for call in (
        lambda: lake.create_table("db.x", "id bigint", format_version="two"),
        lambda: table.upgrade("two"),
    ):
        with pytest.raises(ValidationError, match="format_version is 'two'"):
            call()


def test_a_misspelt_column_is_answered_with_the_nearest_and_all(lake, cities):
    def update(change):
        with cities.update_schema() as builder:
            change(builder)

    def partition():
        with cities.update_spec() as builder:
            builder.add_field("citty")

    calls = [
        (ValidationError, lambda: cities.scan(columns=["citty"])),
        (PredicateError, lambda: cities.scan(where="citty = 'Oslo'")),
        (ValidationError, lambda: cities.scan().aggregate("max(citty)")),
        (ValidationError, lambda: cities.changes(identifier_columns="citty")),
        (EvolutionError, lambda: update(lambda b: b.delete_column("citty"))),
        (EvolutionError, lambda: update(lambda b: b.rename_column("citty", "town"))),
        (ValidationError, partition),
        (ValidationError, lambda: cities.replace_sort_order("citty")),
        (
            ValidationError,
            lambda: lake.create_table("db.u", cities.schema, partition_by="bucket(4, citty)"),
        ),
        (ValidationError, lambda: lake.create_table("db.u", cities.schema, sort_by="citty")),
    ]
    for error, call in calls:
        with pytest.raises(error) as refused:
            call()
        assert "(did you mean 'city'?)" in str(refused.value)
        assert "has id, city, point" in str(refused.value)


def test_a_misspelt_field_of_a_struct_is_answered_with_the_nearest(cities):
    with pytest.raises(ValidationError, match=r"did you mean 'point\.x'"):
        cities.scan(columns=["pint.x"])
    with pytest.raises(PredicateError, match=r"did you mean 'point\.x'\?\); the table has id"):
        cities.scan(where="pont.x = 1")
    with pytest.raises(PredicateError, match="No such struct field `nothing` in `x`"):
        cities.scan(where="point.nothing = 1")


# Short calls and the names that users of PyIceberg, PySpark and SQL type first.


@pytest.fixture
def numbers(lake, spark):
    """Ids 0 to 9, then 10 to 14; `start` tags the first append, `side` has 99 besides."""
    table = lake.create_table_as_select("db.numbers", spark.range(10))
    table.create_tag("start")
    table.create_branch("side")
    table.append(spark.range(10, 15))
    table.append(spark.range(99, 100), branch="side")
    return table


def ids(df):
    return sorted(row.id for row in df.collect())


def test_a_predicate_may_come_first(numbers):
    assert ids(numbers.scan("id > 12").to_df()) == [13, 14]


def test_a_limit_gives_so_many_rows_that_match(numbers):
    scan = numbers.scan("id >= 8", limit=3)
    for found in (ids(scan.to_df()), scan.to_arrow()["id"].to_pylist(), list(scan.to_pandas().id)):
        assert len(set(found)) == 3
        assert set(found) <= set(range(8, 15))
    assert scan.count() == 3
    assert repr(scan).endswith("where id >= 8L, limit 3)")
    assert numbers.scan("id >= 8", limit=6).count() == 6
    assert numbers.scan("id >= 8", limit=100).count() == 7
    assert numbers.scan(limit=4).count() == 4
    assert numbers.scan(limit=0).count() == 0
    assert ids(numbers.scan(limit=0).to_df()) == []
    assert ids(numbers.scan(limit=15).to_df()) == list(range(15))
    assert numbers.incremental("start", limit=2).to_df().count() == 2


def test_a_limited_scan_has_no_aggregates(numbers):
    with pytest.raises(ValidationError, match="any 3 of its rows"):
        numbers.scan(limit=3).aggregate("max(id)")


def test_a_limit_that_is_no_number_of_rows_is_refused(numbers):
    for limit in (-1, True, 2.5, "3", 2**31):
        with pytest.raises(ValidationError, match="give a number of rows"):
            numbers.scan(limit=limit)


def test_rows_of_a_limited_scan_can_be_written(lake, numbers):
    made = lake.create_table_as_select("db.some", numbers.scan(limit=6))
    assert made.count() == 6


def test_a_table_counts_and_shows_its_rows(numbers, capsys):
    assert numbers.count() == 15
    numbers.show(2, truncate=False)
    numbers.show(1, vertical=True)
    printed = capsys.readouterr().out
    assert "only showing top 2 rows" in printed
    assert "-RECORD 0" in printed


def test_changes_start_and_end_at_tags_branches_and_ids(numbers):
    first, last = (s.snapshot_id for s in numbers.metadata.snapshots[:2])
    after = list(range(10, 15))
    assert ids(numbers.incremental("start").to_df()) == after
    assert ids(numbers.incremental(first, last).to_df()) == after
    assert ids(numbers.incremental(str(first)).to_df()) == after
    assert ids(numbers.incremental(from_snapshot_id=first).to_df()) == after
    assert ids(numbers.incremental("start", "side").to_df()) == [99]
    assert ids(numbers.incremental(None, "start").to_df()) == list(range(10))
    assert ids(numbers.changes("start", "side")) == [99]
    assert ids(numbers.net_changes("start", "main")) == after
    for name in ("begin", "²", ""):
        with pytest.raises(NoSuchRefError, match=f"no branch or tag '{name}'"):
            numbers.incremental(name)
    with pytest.raises(ValidationError, match="from_snapshot_id is True"):
        numbers.changes(True)
    with pytest.raises(ValidationError, match="to_snapshot_id is 'start'"):
        numbers.changes(to_snapshot_id="start")
    with pytest.raises(ValidationError, match="'start' or from_snapshot_id=1, not both"):
        numbers.changes("start", from_snapshot_id=1)
    with pytest.raises(ValidationError, match="not an ancestor"):
        numbers.incremental("side")


def test_a_range_is_read_with_a_tags_schema_or_the_table_s_for_a_branch(numbers):
    with numbers.update_schema() as change:
        change.add_column("note", "string")
    for read in (
        lambda end: numbers.incremental(None, end).to_df(),
        lambda end: numbers.changes(None, end).drop("_change_type", "_change_ordinal")
        .drop("_commit_snapshot_id"),
    ):  # fmt: skip
        assert read("start").columns == ["id"]
        assert read("side").columns == ["id", "note"]


def test_a_tag_that_is_called_like_a_snapshot_s_id_gives_way_to_the_snapshot(numbers):
    first, last = (s.snapshot_id for s in numbers.metadata.snapshots[:2])
    numbers.create_tag(str(first), snapshot_id=last)
    numbers.create_tag("2024", snapshot_id=last)
    assert numbers.incremental(str(first)).count() == 5
    assert numbers.incremental("2024").count() == 0


def test_a_lake_lists_the_tables_of_all_namespaces(lake):
    lake.create_namespace("db.deep")
    for name in ("db.b", "db.deep.a"):
        lake.create_table(name, "id bigint")
    assert lake.list_tables() == [("db", "b"), ("db", "deep", "a")]
    assert lake.list_tables("db") == [("db", "b")]
