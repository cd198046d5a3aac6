"""`Lake.attach` and `Lake.detach`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from frazil.catalog.protocol import Catalog
from frazil.later import later
from frazil.spark.session.facts import is_connect

if TYPE_CHECKING:
    from frazil.spark.attached.sessions import attach, detach
    from frazil.spark.catalog.sessions import install, uninstall
    from frazil.spark.sql.context import CurrentNamespace
else:
    attach, detach = later("frazil.spark.attached.sessions", "attach", "detach")
    install, uninstall = later("frazil.spark.catalog.sessions", "install", "uninstall")


class SessionCommands:
    """A lake as part of its session."""

    spark: SparkSession
    catalog: Catalog
    _current: CurrentNamespace

    def attach(self, *, name: str | None = None) -> None:
        """Let the session's own methods understand the names of this lake.

        ``spark.sql``, ``spark.table``, ``spark.read``, ``spark.readStream``, ``spark.catalog``,
        ``df.write``, ``df.writeTo``, ``df.mergeInto`` and ``df.writeStream`` take
        ``name.namespace.table``, and after ``USE name`` names without the prefix. A namespace of
        this lake that ``USE`` has set counts in `sql` too, until that has a ``USE`` of its own. All
        else reaches Spark as it was. Every Python object of the session is attached, another
        session is not.

        Args:
            name: what stands before names of tables; the catalog's name unless given.

        Raises:
            ValidationError: the name is no plain word, or is one of Spark's catalogs or of another
                lake in this session.

        Examples:
            >>> lake.attach(name="lake")
            >>> spark.sql("SELECT count(*) FROM lake.db.trips").show()
            >>> df.writeTo("lake.db.trips").append()
        """
        names = attach(self.spark, self.catalog, name=name or self.catalog.name, owner=self)
        self._current.around = partial(names.levels_of, self)
        if not is_connect(self.spark):
            install(self.spark)

    def detach(self) -> None:
        """Undo `attach`: the session's methods are Spark's own again.

        Examples:
            >>> lake.detach()
        """
        detach(self)
        if not is_connect(self.spark):
            uninstall(self.spark)
