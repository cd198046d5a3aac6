"""Arguments as people write them: one name as text, ids and versions as digits, misspelt names."""

import pytest

from frazil.errors import EvolutionError, PredicateError, ValidationError


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


@pytest.mark.check
def test_snapshot_ids_are_taken_as_digits(cities, spark, tmp_path):
    first, second = (str(snapshot.snapshot_id) for snapshot in cities.metadata.snapshots)
    assert cities.scan(snapshot_id=first).count() == 1
    assert cities.snapshot(f" {first} ").snapshot_id == int(first)
    assert cities.files(snapshot_id=first).count() == 1
    assert len(cities.ancestors(second)) == 2
    assert cities.incremental(first, second).count() == 1
    assert cities.changes(from_snapshot_id=first).count() == 1
    assert cities.net_changes(to_snapshot_id=first).count() == 1
    cities.create_branch("b", snapshot_id=first)
    cities.create_tag("t", snapshot_id=second)
    cities.replace_branch("b", snapshot_id=second)
    cities.replace_tag("t", snapshot_id=first)
    assert cities.metadata.refs["b"].snapshot_id == int(second)
    assert cities.metadata.refs["t"].snapshot_id == int(first)
    cities.rollback_to_snapshot(first)
    cities.cherrypick_snapshot(second)
    assert cities.current_snapshot.snapshot_id == int(second)
    cities.set_current_snapshot(first)
    assert cities.current_snapshot.snapshot_id == int(first)
    cities.set_current_snapshot(second)
    cities.overwrite(
        spark.sql("select 3L as id, 'Rome' as city, named_struct('x', 3) as point"),
        where="city = 'Rome'",
        isolation="serializable",
        validate_from_snapshot_id=second,
    )
    stream = cities.read_stream(
        checkpoint=str(tmp_path / "checkpoint"), from_snapshot_id=second, on_overwrite="skip"
    )
    assert stream.isStreaming
    cities.remove_branch("b")
    cities.maintenance.remove_statistics(second)
    cities.maintenance.remove_partition_statistics(second)
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
        ],
        "snapshot_ids": [lambda: cities.maintenance.expire_snapshots(snapshot_ids=[wrong])],
        "from_snapshot_id": [
            lambda: cities.changes(from_snapshot_id=wrong),
            lambda: cities.incremental(from_snapshot_id=wrong),
            lambda: cities.read_stream(checkpoint="/nowhere", from_snapshot_id=wrong),
        ],
        "to_snapshot_id": [lambda: cities.changes(to_snapshot_id=wrong)],
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
