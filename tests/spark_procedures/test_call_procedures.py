"""What each procedure does, and what its result says of it."""

import pytest

from frazil.errors import NoSuchSnapshotError, ValidationError
from maintenance.independent_walk import lying, reached


def ids_of(table):
    """The snapshots, oldest first."""
    return [snapshot.snapshot_id for snapshot in table.metadata.snapshots]


def test_files_are_rewritten(lake, trips, called):
    before = sum(file["file_size_in_bytes"] for file in files_of(trips))
    [row] = called(
        "CALL system.rewrite_data_files(table => 'db.trips', strategy => 'SORT',"
        " sort_order => 'id DESC', options => map('min-input-files', '2'))"
    )
    assert row == {
        "rewritten_data_files_count": 4,
        "added_data_files_count": 1,
        "rewritten_bytes_count": before,
        "failed_data_files_count": 0,
        "removed_delete_files_count": 0,
    }
    found = [row.id for row in trips.refresh().to_df().select("id").collect()]
    assert found == list(range(39, -1, -1))


def test_a_condition_chooses_files(trips, called):
    [row] = called(
        "CALL system.rewrite_data_files('db.trips', options => map('rewrite-all', true),"
        " where => 'id >= 10 and city != ''none'' and id < 20')"
    )
    assert row["rewritten_data_files_count"] == 1
    trips.create_branch("audit")
    [row] = called(
        "CALL system.rewrite_data_files('db.trips', branch => 'audit', sort_order =>"
        " 'zorder(id, city)', options => map('rewrite-all', 'true'))"
    )
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (4, 1)
    assert len(files_of(trips.refresh())) == 4


def test_a_strategy_that_takes_no_order_is_refused(trips, lake):
    with pytest.raises(ValidationError, match="binpack leaves rows"):
        lake.call(
            "CALL system.rewrite_data_files('db.trips', strategy => 'binpack', sort_order => 'id')"
        )
    assert len(ids_of(trips.refresh())) == 4


def test_manifests_are_rewritten(trips, called):
    [row] = called("CALL system.rewrite_manifests('db.trips', use_caching => false)")
    assert row == {"rewritten_manifests_count": 4, "added_manifests_count": 1}
    assert len(trips.refresh().inspect.manifests()) == 1
    assert trips.count() == 40


def test_position_deletes_are_rewritten(spark, lake, called):
    properties = {"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"}
    table = lake.create_table("db.deleted", "id bigint", properties=properties)
    table.append(spark.range(0, 20, 1, 1))
    table.append(spark.range(20, 40, 1, 1))
    for key in (3, 4, 25):
        table.delete(f"id = {key}")
    [row] = called(
        "CALL system.rewrite_position_delete_files(table => 'db.deleted',"
        " options => map('rewrite-all', 'true'))"
    )
    assert (row["rewritten_delete_files_count"], row["added_delete_files_count"]) == (3, 1)
    assert sorted(r.id for r in table.refresh().to_df().collect()) == [
        n for n in range(40) if n not in (3, 4, 25)
    ]


def test_snapshots_expire_and_the_folder_holds_what_the_metadata_reaches(trips, called):
    trips.maintenance.compact(rewrite_all=True)
    [row] = called(
        "CALL system.expire_snapshots(table => 'db.trips', retain_last => 1,"
        " older_than => current_timestamp() + interval 1 day, stream_results => true)"
    )
    # Each append wrote a file, a manifest and a list; the compaction's own stay.
    assert row == {
        "deleted_data_files_count": 4,
        "deleted_position_delete_files_count": 0,
        "deleted_equality_delete_files_count": 0,
        "deleted_manifest_files_count": 4,
        "deleted_manifest_lists_count": 4,
        "deleted_statistics_files_count": 0,
    }
    table = trips.refresh()
    there, known = (
        {path for path in paths if path.suffix in (".parquet", ".avro")}
        for paths in (lying(table.location), reached(table.metadata_location))
    )
    assert there == known


def test_snapshots_expire_by_id_and_unused_schemas_go(trips, called):
    with trips.update_schema() as update:
        update.add_column("note", "string")
    first = ids_of(trips)[0]
    [row] = called(
        f"CALL system.expire_snapshots('db.trips', snapshot_ids => array({first}),"
        " clean_expired_metadata => true)"
    )
    assert row["deleted_manifest_lists_count"] == 1
    assert ids_of(trips.refresh()) == ids_of(trips)
    assert first not in ids_of(trips)


def test_a_number_of_deletes_is_positive(trips, lake):
    with pytest.raises(ValidationError, match="max_concurrent_deletes is 0"):
        lake.call("CALL system.expire_snapshots('db.trips', max_concurrent_deletes => 0)")


def test_tables_go_back_and_forward(trips, called):
    first, second, third, fourth = ids_of(trips)
    assert called(f"CALL system.rollback_to_snapshot('db.trips', {second})") == [
        {"previous_snapshot_id": fourth, "current_snapshot_id": second}
    ]
    assert called(f"CALL system.set_current_snapshot('db.trips', {third})") == [
        {"previous_snapshot_id": second, "current_snapshot_id": third}
    ]
    trips.refresh().create_tag("v1", snapshot_id=first)
    assert called("CALL system.set_current_snapshot(ref => 'v1', table => 'db.trips')") == [
        {"previous_snapshot_id": third, "current_snapshot_id": first}
    ]
    trips.refresh().create_branch("ahead", snapshot_id=fourth)
    assert called("CALL system.fast_forward('db.trips', 'main', 'ahead')") == [
        {"branch_updated": "main", "previous_ref": first, "updated_ref": fourth}
    ]
    assert called("CALL system.fast_forward('db.trips', 'made', 'v1')") == [
        {"branch_updated": "made", "previous_ref": None, "updated_ref": first}
    ]
    with pytest.raises(ValidationError, match="either snapshot_id or ref"):
        called("CALL system.set_current_snapshot('db.trips')")


def test_a_time_is_in_the_sessions_zone(spark, trips, called):
    _, second, third, fourth = trips.metadata.snapshots
    for zone, form in (("Pacific/Auckland", "TIMESTAMP '{}'"), ("America/Lima", "'{}'")):
        trips.refresh().set_current_snapshot(fourth.snapshot_id)
        before = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            query = f"select string(timestamp_millis({third.timestamp_ms})) as at"
            moment = form.format(spark.sql(query).first().at)
            [row] = called(f"CALL system.rollback_to_timestamp('db.trips', {moment})")
        finally:
            spark.conf.set("spark.sql.session.timeZone", before)
        # What is older than the third is the second.
        assert row == {
            "previous_snapshot_id": fourth.snapshot_id,
            "current_snapshot_id": second.snapshot_id,
        }


def test_ancestors_are_listed(trips, lake, called):
    snapshots = {each.snapshot_id: each.timestamp_ms for each in trips.metadata.snapshots}
    expected = [{"snapshot_id": key, "timestamp": at} for key, at in reversed(snapshots.items())]
    assert called("CALL system.ancestors_of('db.trips')") == expected
    second = ids_of(trips)[1]
    assert called(f"CALL system.ancestors_of('db.trips', {second})") == expected[2:]
    lake.create_table("db.empty", "id int")
    with pytest.raises(ValueError, match=r"db\.empty is empty"):
        called("CALL system.ancestors_of('db.empty')")
    with pytest.raises(NoSuchSnapshotError):
        called("CALL system.ancestors_of('db.trips', 1)")


def test_staged_changes_are_published(spark, trips, called):
    trips.set_properties({"write.wap.enabled": "true"})
    staged = {}
    for wap_id, start in (("one", 100), ("two", 200)):
        spark.conf.set("spark.wap.id", wap_id)
        try:
            trips.append(spark.range(start, start + 5).selectExpr("id", "'x' as city"))
        finally:
            spark.conf.unset("spark.wap.id")
        staged[wap_id] = ids_of(trips)[-1]
    assert trips.refresh().count() == 40
    [row] = called("CALL system.publish_changes('db.trips', 'one')")
    assert row["source_snapshot_id"] == staged["one"]
    assert row["current_snapshot_id"] == trips.refresh().current_snapshot.snapshot_id
    [row] = called(f"CALL system.cherrypick_snapshot('db.trips', {staged['two']})")
    assert row["source_snapshot_id"] == staged["two"]
    assert row["current_snapshot_id"] == trips.refresh().current_snapshot.snapshot_id
    assert trips.count() == 50


def test_tables_are_registered(trips, lake, called):
    location = trips.metadata_location
    [row] = called(f"CALL default.system.register_table('default.db.again', '{location}')")
    assert row == {
        "current_snapshot_id": ids_of(trips)[-1],
        "total_records_count": 40,
        "total_data_files_count": 4,
    }
    assert lake.load_table("db.again").count() == 40
    empty = lake.create_table("db.empty", "id int").metadata_location
    [row] = called(f"CALL system.register_table(metadata_file => '{empty}', table => 'db.`a.b`')")
    assert set(row.values()) == {None}
    assert ("db", "a.b") in lake.list_tables("db")


def test_a_namespace_may_have_the_catalogs_name(spark, lake, called):
    lake.create_namespace("default")
    lake.create_namespace("default.db")
    table = lake.create_table("default.db.t", "id bigint")
    table.append(spark.range(3))
    [row] = called("CALL default.system.ancestors_of('default.db.t')")
    assert row["snapshot_id"] == table.current_snapshot.snapshot_id


def files_of(table):
    """The data files of the current snapshot."""
    return table.inspect.data_files().to_dicts()
