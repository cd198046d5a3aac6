"""Scans that the server plans: which files, with which deletes, in how many parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, DoubleType, LongType, NestedField, StringType
from serve_cases import Running, namespace, running, sql_catalog, table
from test_serve_clients import duckdb_of

from frazil.serve.settings import ServeSettings

URL = "/v1/namespaces/a/tables/t"
FIELDS = (
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "part", StringType(), required=False),
    NestedField(3, "n", LongType(), required=False),
    NestedField(4, "day", DateType(), required=False),
    NestedField(5, "price", DecimalType(9, 2), required=False),
    NestedField(6, "x", DoubleType(), required=False),
)
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))
FILES: dict[str, list[tuple[Any, ...]]] = {
    "low": [(1, 5, "2024-01-01", "1.00", 0.5), (2, None, "2024-01-02", "2.00", 1.5)],
    "high": [(11, 7, "2024-06-01", "8.00", 9.5), (12, 8, "2024-06-02", "9.00", 10.5)],
    "null": [(21, None, None, None, None)],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("lake")
    with running(sql_catalog(folder), ServeSettings(tasks_per_answer=2)) as server:
        catalog = RestCatalog("lake", uri=server.uri)
        catalog.create_namespace("a")
        made = catalog.create_table("a.t", Schema(*FIELDS), partition_spec=SPEC)
        arrow = made.schema().as_arrow()
        for part, rows in FILES.items():
            made.append(_arrow(arrow, part, rows))
        yield server
        server.check_exchanges()


def _arrow(schema: pa.Schema, part: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    columns.insert(1, (part,) * len(rows))
    arrays = [
        pa.array(each, pa.string()).cast(field.type)
        if field.name in ("day", "price")
        else pa.array(each, field.type)
        for each, field in zip(columns, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def planned(client: httpx.Client, url: str = URL, **body: Any) -> list[dict[str, Any]]:
    """Every task of a scan, with its deletes in the place of their numbers."""
    answer = client.post(f"{url}/plan", json=body)
    assert answer.status_code == 200, answer.text
    parts = [answer.json()]
    for task in parts[0].get("plan-tasks", ()):
        more = client.post(f"{url}/tasks", json={"plan-task": task})
        assert more.status_code == 200, more.text
        parts.append(more.json())
    found = []
    for part in parts:
        assert len(part["file-scan-tasks"]) <= 2
        for task in part["file-scan-tasks"]:
            numbers = task.get("delete-file-references", [])
            found.append({**task, "deletes": [part["delete-files"][i] for i in numbers]})
    return found


def parts_of(client: httpx.Client, filter: Any) -> set[str]:
    """The partitions of the files that a filter leaves."""
    return {each["data-file"]["partition"][0] for each in planned(client, filter=filter)}


def _compare(kind: str, name: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "term": name, "value": value}


ALL, LOW, HIGH, NULL = {"low", "high", "null"}, {"low"}, {"high"}, {"null"}
FILTERS: list[tuple[Any, set[str]]] = [
    (True, ALL),
    (False, set()),
    ({"type": "true"}, ALL),
    (_compare("eq", "id", 2), LOW),
    (_compare("gt", "id", 10), HIGH | NULL),
    ({"type": "lt-eq", "left": {"type": "reference", "name": "id"}, "right": 2}, LOW),
    ({"type": "lt", "left": {"type": "reference", "id": 1}, "right": 2}, LOW),
    ({"type": "gt-eq", "left": 2, "right": {"type": "reference", "id": 1}}, LOW),
    ({"type": "in", "term": "id", "values": [1, 12]}, LOW | HIGH),
    ({"type": "in", "child": {"type": "reference", "id": 1}, "values": [99]}, set()),
    (_compare("eq", "part", "high"), HIGH),
    (_compare("starts-with", "part", "lo"), LOW),
    # Java's clients keep NULL under these, so its files stay.
    (_compare("not-eq", "n", 7), ALL),
    (_compare("not-starts-with", "part", "lo"), HIGH | NULL),
    ({"type": "not", "child": _compare("eq", "part", "low")}, HIGH | NULL),
    ({"type": "not-in", "term": "part", "values": ["low", "high"]}, NULL),
    ({"type": "not", "child": {"type": "in", "term": "part", "values": ["low"]}}, HIGH | NULL),
    ({"type": "is-null", "term": "n"}, LOW | NULL),
    ({"type": "not-null", "term": "n"}, LOW | HIGH),
    ({"type": "not", "child": {"type": "not-null", "term": "n"}}, LOW | NULL),
    (_compare("lt", "day", "2024-02-01"), LOW),
    (_compare("gt", "day", 19800), HIGH),
    (_compare("eq", "price", "9.00"), HIGH),
    # Who wrote the file counts no NaN, which is above every number.
    (_compare("gt", "x", 2), LOW | HIGH),
    (_compare("lt", "x", 2), LOW),
    (
        {"type": "and", "left": _compare("gt", "id", 1), "right": _compare("lt", "id", 12)},
        LOW | HIGH,
    ),
    (
        {
            "type": "not",
            "child": {
                "type": "or",
                "left": _compare("lt", "id", 5),
                "right": _compare("gt", "id", 20),
            },
        },
        HIGH,
    ),
    # What the server does not know leaves no file out.
    (
        {
            "type": "eq",
            "term": {"type": "transform", "transform": "bucket[4]", "term": "id"},
            "value": 1,
        },
        ALL,
    ),
    (
        {
            "type": "not",
            "child": {
                "type": "eq",
                "left": {"type": "reference", "id": 1},
                "right": {"type": "reference", "id": 3},
            },
        },
        ALL,
    ),
]


@pytest.mark.parametrize("number", range(len(FILTERS)))
def test_filters(server: Running, number: int) -> None:
    filter, wanted = FILTERS[number]
    with server.client() as client:
        assert parts_of(client, filter) == wanted


def test_residuals(server: Running) -> None:
    """True only where every client means the same rows, and every row of the file matches."""
    with server.client() as client:
        for filter, wanted in (
            (None, [True] * 3),
            (_compare("gt", "id", 10), [True] * 2),
            (_compare("gt", "id", 11), [None, True]),
            (_compare("not-eq", "id", 99), [None] * 3),
        ):
            tasks = planned(client, filter=filter) if filter else planned(client)
            found = sorted([str(each.get("residual-filter")) for each in tasks])
            assert found == sorted(map(str, wanted)), filter


BROKEN = [
    {"filter": _compare("eq", "none", 1)},
    {"filter": _compare("eq", "id", "text")},
    {"filter": _compare("eq", "price", "text")},
    {"filter": _compare("eq", "id", {"a": 1})},
    {"filter": {"type": "what", "term": "id"}},
    {"filter": {"type": "and", "left": True}},
    {"filter": "id > 1"},
    {"filter": {"type": "is-nan", "term": "id"}},
    {"snapshot-id": 5},
    {"start-snapshot-id": 5},
    {"end-snapshot-id": 5},
    {"snapshot-id": "5"},
    {"stats-fields": ["none"]},
    {"case-sensitive": 1},
]


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_requests_that_are_refused(server: Running, number: int) -> None:
    with server.client() as client:
        answer = client.post(f"{URL}/plan", json=BROKEN[number])
        assert answer.status_code == 400, answer.text


LEFT, RIGHT = (
    ('{"type": "%s", "left": ', ', "right": %s}'),
    ('{"type": "%s", "right": ', ', "left": %s}'),
)
FALSE = '{"type": "eq", "term": "id", "value": 99}'
TRUE = '{"type": "lt", "term": "id", "value": 99}'
BOTH = (LEFT[0] % "and" + LEFT[0] % "or", LEFT[1] % FALSE + LEFT[1] % TRUE)
NESTED: dict[str, tuple[str, str, int, set[str] | None]] = {
    "not": ('{"type": "not", "child": ', "}", 800, LOW),
    "or to the left": (LEFT[0] % "or", LEFT[1] % FALSE, 800, LOW),
    "not and not or": (
        '{"type": "not", "child": '
        + LEFT[0] % "and"
        + '{"type": "not", "child": '
        + LEFT[0] % "or",
        LEFT[1] % FALSE + "}" + LEFT[1] % TRUE + "}",
        200,
        LOW,
    ),
    "one in the other, too deep": (BOTH[0], BOTH[1], 200, None),
    "too deep": ('{"type": "not", "child": ', "}", 100_000, None),
}


@pytest.mark.parametrize("case", NESTED)
def test_a_filter_that_is_nested_deeply(server: Running, case: str) -> None:
    begin, end, depth, expected = NESTED[case]
    core = '{"type": "eq", "term": "part", "value": "low"}'
    with server.client() as client:
        answer = client.post(
            f"{URL}/plan",
            content=f'{{"filter": {begin * depth}{core}{end * depth}}}',
            headers={"Content-Type": "application/json"},
        )
        if expected is None:
            assert answer.status_code == 400
            return
        assert answer.status_code == 200, answer.text
        tasks = answer.json()["file-scan-tasks"]
        assert {each["data-file"]["partition"][0] for each in tasks} == expected


def test_what_is_told_of_a_file(server: Running) -> None:
    with server.client() as client:
        wanted = ["id", "day", "price", "x", "part"]
        task = next(
            each
            for each in planned(client, **{"stats-fields": wanted})
            if each["data-file"]["partition"] == ["low"]
        )
        file = task["data-file"]
        assert (file["content"], file["file-format"], file["spec-id"]) == ("data", "parquet", 0)
        assert file["record-count"] == 2
        assert (
            file["file-size-in-bytes"]
            == Path(file["file-path"].removeprefix("file://")).stat().st_size
        )
        lower = dict(zip(*file["lower-bounds"].values(), strict=True))
        assert lower == {1: 1, 2: "low", 4: "2024-01-01", 5: "1.00", 6: 0.5}
        assert "lower-bounds" not in planned(client)[0]["data-file"]


def test_snapshots_and_what_is_between(server: Running) -> None:
    with server.client() as client:
        metadata = client.get(URL).json()["metadata"]
        first, second, third = (each["snapshot-id"] for each in metadata["snapshots"])
        assert len(planned(client, **{"snapshot-id": first})) == 1
        assert len(planned(client, **{"snapshot-id": second, "use-snapshot-schema": True})) == 2
        between = planned(client, **{"start-snapshot-id": first, "end-snapshot-id": third})
        assert {each["data-file"]["partition"][0] for each in between} == HIGH | NULL
        backwards = {"start-snapshot-id": third, "end-snapshot-id": first}
        assert client.post(f"{URL}/plan", json=backwards).status_code == 400


def test_plan_tasks(server: Running) -> None:
    with server.client() as client:
        [task] = client.post(f"{URL}/plan", json={}).json()["plan-tasks"]
        for wrong in ("", "nonsense", task[:-4], task[::-1], "%%%"):
            answer = client.post(f"{URL}/tasks", json={"plan-task": wrong})
            assert answer.status_code == 404, wrong
            assert answer.json()["error"]["type"] == "NoSuchPlanTaskException"
        namespace(client, "b")
        assert table(client, "b", "t").status_code == 200
        other = client.post("/v1/namespaces/b/tables/t/tasks", json={"plan-task": task})
        assert other.status_code == 404
        empty = client.post("/v1/namespaces/b/tables/t/plan", json={}).json()
        assert (empty["status"], empty["file-scan-tasks"]) == ("completed", [])
        assert client.get(f"{URL}/plan/{empty['plan-id']}").status_code == 404
        assert client.delete(f"{URL}/plan/{empty['plan-id']}").status_code == 404


def test_deletes_take_their_rows(server: Running) -> None:
    """Rows of the tasks, read here by the files alone, are those that DuckDB left."""
    with server.client() as client:
        namespace(client, "d")
        made = RestCatalog("lake", uri=server.uri).create_table(
            "d.t", pa.schema([("id", pa.int64())])
        )
        for start in (0, 10, 20):
            made.append(pa.table({"id": pa.array(range(start, start + 10), pa.int64())}))
        with duckdb_of(server) as connection:
            connection.execute("DELETE FROM lake.d.t WHERE id % 3 = 0 AND id < 20")
        tasks = planned(client, "/v1/namespaces/d/tables/t")
        assert any(each["deletes"] for each in tasks)
        left = []
        for task in tasks:
            path = task["data-file"]["file-path"]
            gone = set()
            for delete in task["deletes"]:
                assert delete["content"] == "position-deletes"
                rows = pq.read_table(delete["file-path"].removeprefix("file://")).to_pylist()
                gone |= {each["pos"] for each in rows if each["file_path"] == path}
            rows = pq.read_table(path.removeprefix("file://"))["id"].to_pylist()
            left += [each for place, each in enumerate(rows) if place not in gone]
    assert sorted(left) == [each for each in range(30) if each % 3 or each >= 20]
