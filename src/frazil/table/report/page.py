"""One self-contained page about a table: no file beside it, nothing from a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import polars as pl

from frazil.format.html_text import html_script_json, html_table, html_text, size_text
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.summaries import count_in
from frazil.planning.plan import files_here, plan
from frazil.storage.files import FileIO
from frazil.storage.paths import redact_properties
from frazil.table.maintenance.optimizing.choices import OptimizingPlan
from frazil.table.maintenance.optimizing.health import Health
from frazil.table.maintenance.optimizing.look import look
from frazil.table.maintenance.optimizing.settings import OptimizingSettings
from frazil.table.maintenance.progress import MaintenanceProgress, OnMaintenance, tell_nobody
from frazil.table.report.charts import Chart, deletes_chart, sizes_chart, snapshots_chart
from frazil.table.report.layout import (
    ALONE,
    Surroundings,
    now_text,
    plotting_library,
    script_element,
    utc_text,
    whole_page,
)

_MOST_ROWS: Final = 50

_BODY: Final = """{header}<main>
<h1>{title}</h1>
<p>{about}</p>
<section class="cards" aria-label="Figures">{cards}</section>
{charts}
<section {region}="choices"><h2 id="choices">What optimize would do</h2>{choices}</section>
<section {region}="partitions"><h2 id="partitions">Partitions, the worst first</h2>\
{partitions}</section>
<section {region}="columns"><h2 id="columns">Columns</h2>{columns}</section>
<section {region}="newest"><h2 id="newest">Newest snapshots</h2>{snapshots}</section>
<section {region}="properties"><h2 id="properties">Properties</h2>{properties}</section>
</main>
{scripts}"""

# What is wider than the page is moved by the keyboard too.
_REGION: Final = 'role="region" tabindex="0" aria-labelledby'

_CHARTS: Final = """<section><h2 id="h-snapshots">Snapshots over time</h2>\
<div id="snapshots" role="img" aria-labelledby="h-snapshots"></div></section>
<div class="pair">
<section><h2 id="h-sizes">File sizes</h2>\
<div id="sizes" role="img" aria-labelledby="h-sizes"></div></section>
<section><h2 id="h-deletes">Deletes by partition</h2>\
<div id="deletes" role="img" aria-labelledby="h-deletes"></div></section>
</div>"""

_NO_CHARTS: Final = """<section><h2>Charts</h2>\
<p>The server has no plotting library: pip install 'frazil[report]'</p></section>"""

_DRAW: Final = """
const charts = JSON.parse(document.getElementById("charts").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const look = getComputedStyle(document.documentElement);
  const text = look.getPropertyValue("--text").trim();
  const line = look.getPropertyValue("--line").trim();
  for (const [name, chart] of Object.entries(charts)) {
    const layout = {...chart.layout, font: {...chart.layout.font, color: text}};
    for (const axis of Object.keys(layout).filter(key => /^[xy]axis/.test(key))) {
      layout[axis] = {gridcolor: line, zerolinecolor: line, linecolor: line, ...layout[axis]};
    }
    Plotly.react(name, chart.data, layout, {displayModeBar: false, responsive: true});
  }
}
draw();
dark.addEventListener("change", draw);
document.body.dataset.drawn = Object.keys(charts).length;
"""


@dataclass(frozen=True, slots=True)
class TablePage:
    """A page about a table.

    Attributes:
        html: all of it.
        health: of the table's files.
    """

    html: str
    health: Health


def report_page(
    name: str,
    metadata: TableMetadata,
    io: FileIO,
    *,
    around: Surroundings = ALONE,
    tell: OnMaintenance = tell_nobody,
) -> TablePage:
    """Return a page about a table: snapshots, files, deletes, and the maintenance that it needs.

    `tell` hears of manifests as they are read.
    """
    library = around.library
    loaded = plotting_library() if library.is_there and library.address is None else ""

    def tell_of_manifests(done: int, count: int) -> None:
        tell(MaintenanceProgress("reading manifests", count, done))

    every = plan(
        metadata,
        metadata.current_snapshot,
        io,
        elsewhere=partial(files_here, on_read=tell_of_manifests),
    )
    found = look(metadata, io, every=every)
    sizes = every.files["file_size_in_bytes"]
    tell(MaintenanceProgress("done"))
    elements, scripts = "", []
    if library.is_there:
        drawn = html_script_json(_charts(found, metadata, sizes))
        first = (
            script_element(loaded)
            if library.address is None
            else f'<script src="{html_text(library.address)}"></script>'
        )
        elements = (
            f'{first}<script type="application/json" id="charts">{drawn}</script>'
            f"{script_element(_DRAW)}"
        )
        scripts = [_DRAW] if library.address is not None else [loaded, _DRAW]
    body = _BODY.format(
        header=around.header,
        title=html_text(name),
        about=html_text(
            f"{metadata.location}, format version {metadata.format_version}, as of {now_text()}"
        ),
        cards=_cards(found, metadata),
        charts=_CHARTS if library.is_there else _NO_CHARTS,
        region=_REGION,
        choices=_choices(found),
        partitions=_partitions(found),
        columns=_columns(metadata),
        snapshots=_snapshots(metadata),
        properties=_properties(metadata),
        scripts=elements,
    )
    html = whole_page(name, body, scripts=scripts, files=library.address is not None)
    return TablePage(html, found.health)


def _charts(found: OptimizingPlan, metadata: TableMetadata, sizes: pl.Series) -> dict[str, Chart]:
    target = OptimizingSettings.of(metadata.properties).target_size
    return {
        "snapshots": snapshots_chart(metadata.snapshots),
        "sizes": sizes_chart(sizes, target=target),
        "deletes": deletes_chart(found.partitions),
    }


def _cards(found: OptimizingPlan, metadata: TableMetadata) -> str:
    partitions = found.partitions
    after = max(found.read_seconds - found.gain_seconds, 0.0)
    cards = {
        "health": f"{found.health.score} of 100",
        "data files": f"{found.health.files:,}",
        "size of the data files": size_text(found.health.size_in_bytes),
        "rows, deleted ones included": f"{int(partitions['rows'].sum()):,}",
        "partitions": f"{len(partitions):,}",
        "snapshots": f"{len(metadata.snapshots):,}",
        "to read all of it on one core, as predicted": f"{found.read_seconds:.3g} s",
        "the same after optimize": f"{after:.3g} s",
    }
    return "".join(
        f'<div class="card"><b>{html_text(value)}</b>{html_text(name)}</div>'
        for name, value in cards.items()
    )


def _choices(found: OptimizingPlan) -> str:
    if found.is_empty:
        return "<p>Nothing: the table is in good order.</p>"
    return html_table(
        ("kind", "work", "partition", "files", "size", "reason", "a read is faster by, s"),
        [
            (
                str(each.kind), str(each.work), each.partition, each.files,
                size_text(each.size_in_bytes), each.reason, each.gain_seconds,
            )
            for each in found.choices[:_MOST_ROWS]
        ],
    ) + _more_note(len(found.choices))  # fmt: skip


def _partitions(found: OptimizingPlan) -> str:
    rows = found.partitions.head(_MOST_ROWS).iter_rows(named=True)
    return html_table(
        (
            "partition", "health of 100", "files", "size", "rows",
            "deleted by position", "deleted by equality, at most",
        ),
        [
            (
                row["partition"] or "the table", round(row["score"]), row["files"],
                size_text(row["size"]), row["rows"], round(row["position_rows"]),
                min(round(row["equality_rows"]), row["rows"]),
            )
            for row in rows
        ],
    ) + _more_note(len(found.partitions))  # fmt: skip


def _columns(metadata: TableMetadata) -> str:
    fields = metadata.schema.fields
    return html_table(
        ("id", "column", "type", "required", "comment"),
        [
            (
                field.field_id, field.name, str(field.field_type),
                "yes" if field.required else "no", field.doc or "",
            )
            for field in fields[:_MOST_ROWS]
        ],
    ) + _more_note(len(fields))  # fmt: skip


def _snapshots(metadata: TableMetadata) -> str:
    newest = sorted(metadata.snapshots, key=lambda each: -each.timestamp_ms)
    return html_table(
        (
            "committed at (UTC)", "snapshot", "operation", "rows added", "rows removed with files",
            "deletes added by position", "by equality", "rows, deleted ones included",
        ),
        [
            (
                utc_text(each.timestamp_ms), str(each.snapshot_id), each.operation or "?",
                *(_summary_value(each, key) for key in _SUMMARY_KEYS),
            )
            for each in newest[:_MOST_ROWS]
        ],
    ) + _more_note(len(newest))  # fmt: skip


def _properties(metadata: TableMetadata) -> str:
    known = sorted(redact_properties(dict(metadata.properties)).items())
    if not known:
        return "<p>None</p>"
    return html_table(("property", "value"), known[:_MOST_ROWS]) + _more_note(len(known))


_SUMMARY_KEYS: Final = (
    "added-records",
    "deleted-records",
    "added-position-deletes",
    "added-equality-deletes",
    "total-records",
)


def _summary_value(snapshot: Snapshot, key: str) -> int | str:
    """What a summary says: a count, or whatever stands there instead."""
    count = count_in(snapshot.summary, key)
    return (snapshot.summary or {}).get(key, 0) if count is None else count


def _more_note(count: int) -> str:
    return f"<p>… and {count - _MOST_ROWS:,} more</p>" if count > _MOST_ROWS else ""
