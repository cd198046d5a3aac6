"""A table under upserts, appends, readers and every kind of maintenance at once, beside a model.

The feed's batch number k sets the row -1 to k, so whoever reads the table knows which batches its
rows must show; the model holds what the rows are after each. Appended rows are numbered without a
gap: what is there must be the first so many of them.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from frazil.errors import ConflictError
from frazil.spark.lake import Lake
from frazil.spark.maintenance.optimizing.watch import watch
from maintenance.independent_walk import lying, reached

DDL = "id bigint, v bigint"
CHANGES = f"{DDL}, op string, seq bigint"
APPENDED = 1_000_000
KEYS = 300
ORPHAN_AGE = 0.4
"""Orphans are removed that are older than this share of the run."""
_WRITERS = ("append", "compact", "convert", "watch")
_AHEAD = 4
"""So many batches may wait for the stream."""
PROPERTIES = {
    "write.delete.mode": "merge-on-read",
    "self-optimizing.minor.trigger.interval": "2000",
    "write.metadata.previous-versions-max": "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "commit.retry.num-retries": "50",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "200",
}


@dataclass
class Soak:
    """One run.

    Attributes:
        retention: seconds for which every snapshot is kept.
        at_work: since when the writers that are at work are.
        counts: how often each thing was done, found or refused.
        wrong: what must not have been seen.
    """

    lake: Lake
    name: str
    folder: Path
    version: int
    retention: float
    seed: int = 1
    states: list[dict[int, int]] = field(default_factory=lambda: [{}])
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    end_maintenance: threading.Event = field(default_factory=threading.Event)
    appended: int = 0
    streamed: Counter[int] = field(default_factory=Counter)
    at_work: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.time)
    orphan_age: float = 0.0
    upserts: Any = None

    def run(self, seconds: float) -> None:
        """Let all of it run beside each other, then let the feed and the stream be drained."""
        (self.folder / "feed").mkdir(parents=True)
        self.orphan_age = seconds * ORPHAN_AGE
        table = self.lake.create_table(
            self.name,
            DDL,
            partition_by=["bucket(3, id)"],
            format_version=self.version,
            properties=PROPERTIES,
        )
        spark = self.lake.spark
        changes = spark.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1)
        writer = table.upsert_stream(
            changes.json(str(self.folder / "feed"), pathGlobFilter="*.json"),
            keys="id",
            op="op",
            order_by="seq",
            mode="equality-deletes",
            checkpoint=f"{self.folder}/upserts",
        )
        self.upserts = writer
        reader = self._stream({"processingTime": "500 milliseconds"})
        workers = [
            threading.Thread(target=self._again, args=(name, work, pause), name=name)
            for name, work, pause in self._work()
        ]
        workers.append(threading.Thread(target=self._watch, name="watch"))
        for worker in workers:
            worker.start()
        until = time.time() + 60
        while not self.counts["newest batch"] and time.time() < until:
            time.sleep(0.1)
        self.stop.wait(seconds)
        self.stop.set()
        for worker in workers:
            worker.join()
        writer.processAllAvailable()
        writer.stop()
        reader.stop()
        self._stream({"availableNow": True}).awaitTermination()
        self.end()

    def end(self) -> None:
        """Compare the end, every snapshot that is kept, and what was streamed."""
        table = self.lake.load_table(self.name)
        last = len(self.states) - 1
        if (found := self.check(table.to_df(), "end")) != last:
            self.wrong.append(f"the end shows batch {found} of {last}")
        before = -1
        for snapshot in table.metadata.snapshots:
            at = self.check(table.scan(snapshot_id=snapshot.snapshot_id).to_df(), "history")
            told = (snapshot.summary or {}).get("frazil.stream.batch-id")
            if at < before or (told is not None and at != int(told) + 1):
                self.wrong.append(f"snapshot {snapshot.snapshot_id} of batch {told} shows {at}")
            before = at
        expected = Counter(range(APPENDED, APPENDED + self.appended))
        if self.streamed != expected:
            lost, twice = expected - self.streamed, self.streamed - expected
            self.wrong.append(f"streamed: lost {sorted(lost)[:9]}, too often {sorted(twice)[:9]}")
        if not table.maintenance.check().is_sound:
            self.wrong.append(str(table.maintenance.check()))
        self._leave_nothing(table)

    def _leave_nothing(self, table: Any) -> None:
        """Compare what expiry and orphan removal leave with what an independent walk reaches."""
        time.sleep(1.1)
        now = int(time.time() * 1000)
        table.maintenance.expire_snapshots(older_than=now, retain_last=1)
        table.maintenance.remove_orphan_files(older_than=now, least_age=timedelta(0))
        walked = reached(table.metadata_location)
        left = {path for path in lying(table.location) if path.name[0] not in "._"}
        # Of metadata files those stay too that only the logs of older ones name.
        more = {path for path in left - walked if not path.name.endswith(".metadata.json")}
        if more or walked - left:
            self.wrong.append(f"left over: {sorted(more)[:9]}, lost: {sorted(walked - left)[:9]}")
        self.counts["files in the end"] = len(left)

    def rows(self) -> set[tuple[int, int]]:
        """The rows that every engine must show in the end."""
        return {*self.states[-1].items()} | {
            (number, number) for number in range(APPENDED, APPENDED + self.appended)
        }

    def check(self, df: Any, who: str) -> int:
        """Compare rows with the model; return the batch that they show."""
        rows = [tuple(row) for row in df.select("id", "v").collect()]
        added = sorted(row[0] for row in rows if row[0] >= APPENDED)
        found = {row[0]: row[1] for row in rows if row[0] < APPENDED}
        batch = found.get(-1, 0)
        expected = self.states[batch]
        if added != list(range(APPENDED, APPENDED + len(added))):
            self.wrong.append(f"{who}: appended rows have gaps or come twice at batch {batch}")
        if len(found) + len(added) != len(rows) or found != expected:
            changed = sorted(set(found.items()) ^ set(expected.items()))[:9]
            self.wrong.append(f"{who}: {len(rows)} rows at batch {batch}; differ: {changed}")
        self.counts[f"{who} reads"] += 1
        return batch

    def _work(self) -> list[tuple[str, Callable[[Any, random.Random], None], float]]:
        return [
            ("feed", self._feed, 0.3),
            ("append", self._append, 1.0),
            ("compact", self._compact, 1.0),
            ("convert", self._convert, 2.0),
            ("expire", self._expire, 2.0),
            ("read", self._read, 0.2),
            ("travel", self._travel, 0.5),
            ("hold", self._hold, 0.0),
        ]

    def _again(self, name: str, work: Callable[[Any, random.Random], None], pause: float) -> None:
        r = random.Random(f"{self.seed} {name}")
        while not self.stop.is_set():
            began = self.at_work[name] = time.time()
            try:
                work(self.lake.load_table(self.name), r)
                self.counts[name] += 1
            except ConflictError:
                # Only maintenance may give way.
                if name not in ("compact", "convert"):
                    self.wrong.append(f"{name} gave way")
                self.counts[f"{name} gave way"] += 1
            except Exception as error:
                took = time.time() - began
                if name in ("travel", "hold", "read") and took > self.retention / 2:
                    self.counts[f"{name} came too late"] += 1
                else:
                    first = str(error).strip().splitlines()[:1]
                    self.wrong.append(f"{name}: {type(error).__name__}: {first} after {took:.1f} s")
            del self.at_work[name]
            self.stop.wait(pause)

    def _feed(self, table: Any, r: random.Random) -> None:
        number, state = len(self.states), dict(self.states[-1])
        if number > self.counts["newest batch"] + _AHEAD:
            return
        lines = []
        for step in range(40):
            key = r.randrange(KEYS)
            gone = r.random() < 0.25
            if gone:
                state.pop(key, None)
            else:
                state[key] = number * 100 + step
            lines.append((key, number * 100 + step, "d" if gone else "u"))
        state[-1] = number
        lines.append((-1, number, "u"))
        texts = [
            json.dumps({"id": k, "v": v, "op": op, "seq": number * 100 + at})
            for at, (k, v, op) in enumerate(lines)
        ]
        self.states.append(state)
        path = self.folder / "feed" / f"{number:06}.part"
        path.write_text("\n".join(texts))
        os.utime(path, (1_700_000_000 + number,) * 2)
        path.rename(path.with_suffix(".json"))

    def _append(self, table: Any, r: random.Random) -> None:
        first = APPENDED + self.appended
        table.append(self.lake.spark.range(first, first + 5, 1, 1).selectExpr("id", "id as v"))
        self.appended += 5

    def _compact(self, table: Any, r: random.Random) -> None:
        arguments = r.choice(
            [
                {"min_input_files": 2},
                {"rewrite_all": True, "remove_dangling_deletes": True},
                {"strategy": "sort", "sort_order": "id", "min_input_files": 2},
                {"strategy": "zorder", "columns": ["id", "v"], "rewrite_all": True},
                {"min_input_files": 2, "partial_progress_enabled": True},
            ]
        )
        result = table.compact(**arguments)
        self.counts["groups given up"] += len(result.failures)
        self.counts["files compacted"] += result.rewritten_data_files_count

    def _convert(self, table: Any, r: random.Random) -> None:
        done = table.convert_equality_deletes()
        self.counts["files converted"] += done.converted_equality_delete_files_count
        table.maintenance.rewrite_position_deletes(rewrite_all=r.random() < 0.5)
        table.maintenance.rewrite_manifests()

    def _expire(self, table: Any, r: random.Random) -> None:
        planted = f"{table.location}/data/orphan-{r.random()}.parquet"
        table.io.write(planted, b"nobody's")
        os.utime(planted.removeprefix("file://"), (time.time() - 7200,) * 2)
        older = int((time.time() - self.retention) * 1000)
        done = table.maintenance.expire_snapshots(older_than=older, retain_last=1)
        self.counts["snapshots expired"] += len(done.snapshot_ids)
        self.counts["files deleted"] += sum(done.counts.values())
        gone = table.maintenance.remove_orphan_files(
            older_than=int(self._oldest_young() * 1000), least_age=timedelta(0)
        )
        self.counts["orphans removed"] += gone.deleted_files_count
        if table.io.exists(planted):
            self.wrong.append(f"{planted} was left")

    def _oldest_young(self) -> float:
        """The age of orphans as a moment, or before it the start of the oldest write that runs.

        No file of such a write is older than its start, and what is committed is reached. The
        stream's batch began after the trigger that ended last did. A second is for clocks of files.
        """
        running = [at for name, at in [*self.at_work.items()] if name in _WRITERS]
        last = self.upserts.lastProgress
        batch = self.began
        if last is not None:
            batch = datetime.fromisoformat(last["timestamp"]).timestamp()
        return min(time.time() - self.orphan_age, batch, *running) - 1.0

    def _read(self, table: Any, r: random.Random) -> None:
        shown = self.check(table.to_df(), "fresh")
        if shown < self.counts["newest batch"]:
            self.wrong.append(f"batch {self.counts['newest batch']} was there, now {shown} is")
        self.counts["newest batch"] = shown

    def _travel(self, table: Any, r: random.Random) -> None:
        young = (time.time() - self.retention / 2) * 1000
        snapshots = [s for s in table.metadata.snapshots if s.timestamp_ms > young]
        if snapshots:
            chosen = r.choice(snapshots)
            self.check(table.scan(snapshot_id=chosen.snapshot_id).to_df(), "time travel")

    def _hold(self, table: Any, r: random.Random) -> None:
        """One handle and one frame of it, read until half of the retention has gone."""
        df, until = table.to_df(), time.time() + self.retention / 2
        first = self.check(df, "long-lived")
        while time.time() < until and not self.stop.wait(0.5):
            for again in (df, table.to_df()):
                if self.check(again, "long-lived") != first:
                    self.wrong.append("a handle shows another batch without a refresh")

    def _watch(self) -> None:
        def run(table: Any) -> Any:
            self.at_work["watch"] = time.time()
            try:
                result = table.optimize()
            finally:
                del self.at_work["watch"]
            self.counts["optimize"] += 1
            self.counts["optimize changed"] += result.has_changed
            self.counts["optimize gave up"] += len(result.failures)
            return result

        def failed(error: Exception) -> None:
            self.wrong.append(f"optimize: {error}")

        try:
            table = self.lake.load_table(self.name)
            watch(table, interval=1.0, stop=self.stop, run=run, on_error=failed)
        except Exception as error:
            failed(error)

    def _stream(self, trigger: dict[str, Any]) -> Any:
        """Reads what is appended, whatever else happens."""
        checkpoint = f"{self.folder}/stream"
        df = self.lake.read_stream(
            self.name,
            checkpoint=checkpoint,
            on_overwrite="skip",
            on_delete="skip",
            poll_interval=0.2,
        )
        seen: dict[int, list[int]] = {}

        def take(batch: Any, number: int) -> None:
            if number not in seen:
                seen[number] = [row.id for row in batch.select("id").collect()]
                self.streamed.update(each for each in seen[number] if each >= APPENDED)
                self.counts["batches streamed"] += 1

        writer = df.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        return writer.trigger(**trigger).start()
