"""The commit loop: what is written, reused and removed when commits fail, race or get no answer."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from table_cases import (
    CATALOGS,
    CountingIO,
    avro_files,
    avro_files_in_use,
    data_file,
    head,
    make_table,
    names,
)

from ci_share import in_circles
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConflictError,
    ValidationError,
)
from frazil.format import changes as updates
from frazil.storage.files import FileIO
from frazil.table.commit.loop import Backoff
from frazil.table.commit.operation import Changes
from frazil.table.commit.requirements import requirements_for
from frazil.table.conflicts.validation import Validation
from frazil.table.handle import TableHandle
from requirements_catalog import RequirementsCatalog
from s3_server import AnswersLost, s3_server

A, B, C = data_file("a"), data_file("b"), data_file("c", "tue")


class Racing:
    """Another writer commits right before each of our first commits."""

    races = 0

    def commit_table(
        self, identifier: Any, requirements: Any, updates: Any, **base: Any
    ) -> LoadedTable:
        """Lose the race, `races` times."""
        if self.races > 0:
            self.races -= 1
            rival = type(self)(self.name, self.properties)  # type: ignore
            TableHandle(rival, rival.load_table(identifier)).files.fast_append(
                [data_file(f"rival{self.races}", "wed")]
            )
        return super().commit_table(identifier, requirements, updates, **base)  # type: ignore


class RacingFilesystem(Racing, FilesystemCatalog):
    """Compares where the table is."""


class RacingServer(Racing, RequirementsCatalog):
    """Compares what the requirements say."""


Opening = Callable[..., Any]


@pytest.fixture(params=[RacingFilesystem, RacingServer])
def racing(request: pytest.FixtureRequest, tmp_path: Path) -> Opening:
    """Opens a catalog with a rival."""

    def opened(io: FileIO | None = None) -> Any:
        properties = {"warehouse": f"{tmp_path}/warehouse", "uri": f"sqlite:///{tmp_path}/c.db"}
        return request.param("test", properties, io=io)

    return opened


class SilentCatalog(FilesystemCatalog):
    """Commits whose answer is lost, after or before they took place."""

    commits = True
    silent = False
    looks: int | None = None

    def commit_table(
        self, identifier: Any, requirements: Any, updates: Any, **base: Any
    ) -> LoadedTable:
        """Commit perhaps, and do not answer."""
        if not self.silent:
            return super().commit_table(identifier, requirements, updates, **base)
        if self.commits:
            super().commit_table(identifier, requirements, updates, **base)
        self.looks = 0
        raise CommitStateUnknownError("no answer")

    def load_table(self, identifier: Any) -> LoadedTable:
        """Load it, and count that after a commit without an answer."""
        if self.looks is not None:
            self.looks += 1
        return super().load_table(identifier)


def test_a_retry_reuses_manifests_and_writes_a_list_a_try(racing: Opening) -> None:
    """Rules 136, 216."""
    io = CountingIO()
    catalog = racing(io)
    table = make_table(catalog, files=[A])
    io.created.clear()
    catalog.races = 3
    table.files.fast_append([B, C])
    assert io.created["manifest"] == 1
    assert io.created["list"] == 4
    assert names(table) == ["a", "b", "c", "rival0", "rival1", "rival2"]
    assert avro_files(table) == avro_files_in_use(table)


def test_a_retried_overwrite_filters_a_manifest_once(racing: Opening) -> None:
    io = CountingIO()
    catalog = racing(io)
    table = make_table(catalog, files=[A, B])
    io.created.clear()
    catalog.races = 2
    table.files.overwrite([C], removed=[A])
    # One manifest for c, one for the list of a and b without a.
    assert (io.created["manifest"], io.created["list"]) == (2, 3)
    assert names(table) == ["b", "c", "rival0", "rival1"]
    assert avro_files(table) == avro_files_in_use(table)


def test_merged_manifests_of_lost_tries_are_removed(racing: Opening) -> None:
    catalog = racing()
    table = make_table(catalog, properties={"commit.manifest.min-count-to-merge": "2"}, files=[A])
    catalog.races = 2
    table.files.append([B])
    assert names(table) == ["a", "b", "rival0", "rival1"]
    assert avro_files(table) == avro_files_in_use(table)


def test_too_many_lost_races_leave_nothing_behind(racing: Opening) -> None:
    catalog = racing()
    table = make_table(catalog, properties={"commit.retry.num-retries": "2"}, files=[A])
    catalog.races = 5
    with pytest.raises(CommitFailedError, match="3 tries"):
        table.files.append([B])
    assert catalog.races == 2
    table.refresh()
    assert names(table) == ["a", "rival2", "rival3", "rival4"]
    assert avro_files(table) == avro_files_in_use(table)


def test_a_conflict_is_not_tried_again_and_leaves_nothing_behind(racing: Opening) -> None:
    catalog = racing()
    table = make_table(catalog, files=[A])
    catalog.races = 3
    with pytest.raises(ConflictError):
        table.files.overwrite(
            [B], where="true", validation=Validation(table.metadata.current_snapshot_id)
        )
    assert catalog.races == 2
    table.refresh()
    assert avro_files(table) == avro_files_in_use(table)


@pytest.mark.parametrize("kind", in_circles(reversed(CATALOGS), test=1))
def test_files_that_a_store_took_without_an_answer_are_the_commits(
    tmp_path: Path, kind: str
) -> None:
    with s3_server(AnswersLost) as server:
        bucket = server.new_bucket(f"bucket-{uuid.uuid4()}")
        properties = {**server.properties, "warehouse": f"{bucket}/warehouse"}
        catalog: Catalog
        if kind == "sql":
            uri = f"sqlite:///{tmp_path}/catalog.db"
            catalog = SqlCatalog("test", {**properties, "uri": uri})
        else:
            catalog = FilesystemCatalog("test", properties)
        table = make_table(catalog)
        for file in (A, B):
            table.files.append([file])
        assert [s.sequence_number for s in table.refresh().metadata.snapshots] == [1, 2]
        found = table.inspect.files()["file_path"].to_list()
        assert sorted(found) == [A.file_path, B.file_path]


@pytest.mark.parametrize("operation", ["append", "overwrite", "transaction"])
def test_a_commit_without_an_answer_that_took_place_is_found(
    tmp_path: Path, operation: str
) -> None:
    catalog = SilentCatalog("test", {"warehouse": f"{tmp_path}/warehouse"})
    table = make_table(catalog, files=[A])
    catalog.silent = True
    if operation == "append":
        table.files.append([B])
    elif operation == "overwrite":
        table.files.overwrite([B], where="day = 'sun'")
    else:
        with table.transaction() as tx:
            tx.set_properties(x="y")
            tx.files.append([B])
    assert names(table) == ["a", "b"]


@pytest.mark.parametrize("retries", [0, 2])
def test_an_answer_is_looked_for_once_and_as_often_again(tmp_path: Path, retries: int) -> None:
    catalog = SilentCatalog("test", {"warehouse": f"{tmp_path}/warehouse"})
    table = make_table(catalog, properties={"commit.status-check.num-retries": str(retries)})
    catalog.silent = True
    table.files.append([A])
    assert (names(table), catalog.looks) == (["a"], 1)
    catalog.commits = False
    with pytest.raises(CommitStateUnknownError):
        table.files.append([B])
    assert catalog.looks == retries + 1


@pytest.mark.parametrize("commits", [True, False])
def test_an_unknown_outcome_deletes_nothing(tmp_path: Path, commits: bool) -> None:
    catalog = SilentCatalog("test", {"warehouse": f"{tmp_path}/warehouse"})
    table = make_table(catalog, files=[A])
    catalog.silent, catalog.commits = True, commits
    before = avro_files(table)
    # Nobody can tell whose property it is, so its outcome stays unknown.
    change = (lambda: table.set_properties(x="y")) if commits else (lambda: table.files.append([B]))
    with pytest.raises(CommitStateUnknownError):
        change()
    written = avro_files(table) - before
    assert len(written) == (0 if commits else 2)
    assert TableHandle(catalog, catalog.load_table("db.t")).properties.get("x") == (
        "y" if commits else None
    )


def test_a_table_under_the_same_name_is_another_table(catalog: Catalog) -> None:
    """Rule 192."""
    table = make_table(catalog)
    catalog.drop_table("db.t")
    make_table(catalog, properties={"fresh": "1"})
    with pytest.raises(ValidationError, match="uuid"):
        table.refresh()
    with pytest.raises(ValidationError, match="uuid"):
        table.files.append([A])


def test_nothing_to_change_commits_nothing(catalog: Catalog) -> None:
    table = make_table(catalog, properties={"a": "b"})
    before = table.metadata_location
    table.set_properties(a="b")
    table.remove_properties("missing")
    table.upgrade(2)
    table.replace_sort_order()
    with table.update_schema():
        pass
    with table.update_spec():
        pass
    with table.transaction():
        pass
    assert table.refresh().metadata_location == before


def test_waits_grow_and_stay_below_the_maximum() -> None:
    backoff = Backoff(10, 100, 1_000, 10_000)
    waits: Sequence[float] = [backoff.wait_seconds(attempt) for attempt in range(1, 2_000)]
    assert all(0.05 <= wait <= 1.0 for wait in waits)
    assert 0.05 <= waits[0] <= 0.1
    assert all(wait >= 0.5 for wait in waits[4:])


# What a commit asks of the table (rule 213).


def evolved(catalog: Catalog) -> TableHandle:
    table = make_table(catalog)
    with table.update_schema() as schema:
        schema.add_column("x", "int")
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)")
    return table


def test_what_the_table_has_is_chosen_by_its_id(files_catalog: Catalog) -> None:
    """Nothing is added then, so that a REST server knows of no last added one."""
    table = evolved(files_catalog)
    metadata = table.metadata
    order = [updates.AddSortOrder(metadata.sort_order), updates.SetDefaultSortOrder()]
    for added, default in (
        (updates.AddSchema(metadata.schemas_by_id[0]), updates.SetCurrentSchema(0)),
        (updates.AddSpec(metadata.specs_by_id[0]), updates.SetDefaultSpec(0)),
    ):
        last = replace(default, **{next(iter(default.__dataclass_fields__)): updates.LAST_ADDED})
        assert Changes.of(metadata, [added, last]).updates == (added, default)
    assert Changes.of(metadata, order).updates[1] == updates.SetDefaultSortOrder(0)


def test_ids_that_a_snapshot_names_are_asked_for(
    files_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, real = evolved(files_catalog), files_catalog.commit_table
    sent: list[updates.Update] = []

    def commit_table(
        identifier: Any, requirements: Any, updates: Sequence[updates.Update], **base: Any
    ) -> LoadedTable:
        sent.extend(updates)
        return real(identifier, requirements, updates, **base)

    monkeypatch.setattr(files_catalog, "commit_table", commit_table)
    with table.replace_transaction(table.schema, partition_by=["note"]) as tx:
        spec_id = tx.metadata.default_spec_id
        tx.files.append([data_file("a", spec_id=spec_id, partition=("x",))])
    assert updates.SetDefaultSpec(spec_id) in sent
    assert updates.SetDefaultSpec() not in sent


def test_a_staged_snapshot_asks_for_the_branch_that_it_builds_on(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[data_file("a")])
    before = table.metadata
    table.files.append([data_file("b")], wap_id="w")
    [staged] = [s for s in table.metadata.snapshots if s.snapshot_id != head(table)]
    assert set(requirements_for(before, [updates.AddSnapshot(staged)])) == {
        updates.AssertTableUUID(str(before.table_uuid)),
        updates.AssertCurrentSchemaId(0),
        updates.AssertDefaultSpecId(0),
        updates.AssertRefSnapshotId("main", head(table)),
    }
