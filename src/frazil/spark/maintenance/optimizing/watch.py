"""Self-optimizing on a schedule, beside writers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event
from typing import Final, TypeVar

from frazil.errors import FrazilError
from frazil.spark.maintenance.optimizing.results import OptimizeResult
from frazil.table.handle import TableHandle
from frazil.table.maintenance.optimizing.settings import OptimizingSettings

Watched = TypeVar("Watched", bound=TableHandle)
_LOG: Final = logging.getLogger(__name__)


def watch(
    table: Watched,
    *,
    interval: float | None = None,
    stop: Event,
    run: Callable[[Watched], OptimizeResult],
    on_error: Callable[[FrazilError], None] | None = None,
) -> int:
    """Optimize a table again and again until `stop` is set; return how many runs changed it.

    A run that fails is told of, and the next one tries again. A table whose property
    `self-optimizing.enabled` is false is left alone as long as it is.

    Args:
        table: what to look after.
        interval: seconds from the end of a run to the next; the table's
            `self-optimizing.min-plan-interval` unless given.
        stop: set by whoever ends it; a wait ends at once.
        run: does one run.
        on_error: called with what a run failed by.
    """
    changed = 0
    while not stop.is_set():
        pause = interval
        try:
            table.refresh()
            settings = OptimizingSettings.of(table.properties)
            pause = settings.plan_interval / 1000 if interval is None else interval
            if settings.is_enabled:
                changed += run(table).has_changed
        except FrazilError as error:
            _LOG.warning("a run failed: %s", error)
            if on_error is not None:
                on_error(error)
        stop.wait(_USUAL_PAUSE if pause is None else pause)
    return changed


_USUAL_PAUSE: Final = 60.0
