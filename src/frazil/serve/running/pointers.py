"""Where tables are now, looked up together for all requests that wait for it."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Catalog

_LOG = logging.getLogger("frazil.serve")


class PointerLookups:
    """Asks a catalog for the metadata files of tables, one look-up at a time for all who ask.

    Who comes while one is under way is part of the next one, so that every answer was looked up
    after its request came. Used by one event loop.

    Args:
        catalog: one that looks up many tables as quickly as one.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._thread = ThreadPoolExecutor(1, "frazil-serve-pointers")
        self._waiting: dict[Identifier, asyncio.Future[str | None]] = {}
        self._is_asking = False

    async def location(self, table: Identifier) -> str | None:
        """Return the metadata file of a table; None where there is none or it cannot be told."""
        waiting = self._waiting.get(table)
        if waiting is None:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting[table] = waiting
        if not self._is_asking:
            self._ask()
        return await asyncio.shield(waiting)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def _ask(self) -> None:
        self._is_asking = True
        asked, self._waiting = self._waiting, {}
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._thread, self._catalog.metadata_locations, list(asked))
        work.add_done_callback(lambda done: self._answer(asked, done))

    def _answer(
        self,
        asked: dict[Identifier, asyncio.Future[str | None]],
        work: asyncio.Future[dict[Identifier, str]],
    ) -> None:
        self._is_asking = False
        if self._waiting:
            self._ask()
        error = work.exception()
        if error is not None:
            # Each request then asks by itself, and is answered with its own error.
            _LOG.debug("a look-up of %d tables failed: %s", len(asked), type(error).__name__)
        found = {} if error is not None else work.result()
        for table, waiting in asked.items():
            if not waiting.done():
                waiting.set_result(found.get(table))
