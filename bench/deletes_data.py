"""Position deletes and deletion vectors, scattered over the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import frazil
from frazil.format.manifests import Content, DataFile
from frazil.format.puffin import PuffinBuilder, deletion_vector_to_bytes

PATH_ID, POSITION_ID = 2147483546, 2147483545
_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(PATH_ID)}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(POSITION_ID)}),
    ]
)


def delete_positions(table: frazil.Table, share: float, *, commits: int = 1) -> None:
    """Delete this share of each data file's rows by position delete files, one a data file.

    That is how Spark writes them in the Java runtime (`write.delete.granularity` of file).

    Args:
        commits: how many commits the deletes come in; each takes rows from all over.
    """
    chosen = [
        (path, np.array_split(positions, commits)) for path, positions in _chosen(table, share)
    ]
    for number in range(commits):
        files = [
            _position_file(table, path, np.sort(parts[number]), f"{number}-{place}")
            for place, (path, parts) in enumerate(chosen)
        ]
        table.files.row_delta(added_deletes=files)


def delete_from(table: frazil.Table, counts: Mapping[str, int], share: float, *, name: str) -> None:
    """Delete this share of the rows of these data files, given with their counts, in one commit."""
    chance = np.random.default_rng(7)
    table.files.row_delta(
        added_deletes=[
            _position_file(
                table,
                path,
                np.sort(chance.choice(count, int(count * share), replace=False)),
                f"{name}-{place}",
            )
            for place, (path, count) in enumerate(counts.items())
        ]
    )


def delete_by_vectors(table: frazil.Table, share: float) -> None:
    """Delete this share of each data file's rows by a deletion vector, in one Puffin file."""
    puffin = PuffinBuilder()
    chosen = list(_chosen(table, share))
    places = [
        puffin.add_deletion_vector(
            deletion_vector_to_bytes(np.sort(positions).tolist()),
            referenced_data_file=path,
            cardinality=len(positions),
        )
        for path, positions in chosen
    ]
    content = puffin.to_bytes()
    target = f"{table.location}/data/deletes.puffin"
    table.io.write(target, content)
    table.files.row_delta(
        added_deletes=[
            DataFile(
                content=Content.POSITION_DELETES,
                file_path=target,
                file_format="puffin",
                record_count=len(positions),
                file_size_in_bytes=len(content),
                referenced_data_file=path,
                content_offset=place.offset,
                content_size_in_bytes=place.length,
            )
            for (path, positions), place in zip(chosen, places, strict=True)
        ]
    )


def _chosen(table: frazil.Table, share: float) -> Iterator[tuple[str, np.ndarray]]:
    """Each data file with the positions of its rows that go, in random order."""
    chance = np.random.default_rng(7)
    for row in table.inspect.dataframes.data_files().select("file_path", "record_count").collect():
        count = int(row.record_count)
        yield row.file_path, chance.choice(count, int(count * share), replace=False)


def _position_file(table: frazil.Table, path: str, positions: np.ndarray, name: str) -> DataFile:
    sink = pa.BufferOutputStream()
    rows = pa.table([pa.repeat(path, len(positions)), positions], schema=_SCHEMA)
    pq.write_table(rows, sink, compression="zstd")
    content = sink.getvalue().to_pybytes()
    target = f"{table.location}/data/deletes-{name}.parquet"
    table.io.write(target, content)
    bound = {PATH_ID: path.encode()}
    return DataFile(
        content=Content.POSITION_DELETES,
        file_path=target,
        record_count=len(positions),
        file_size_in_bytes=len(content),
        lower_bounds=bound,
        upper_bounds=bound,
        referenced_data_file=path,
    )
