"""The lakes of environment and file, in every session of a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from frazil.catalog.config import configured_names, open_catalog, resolve
from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Catalog
from frazil.errors import ConfigurationError, ValidationError
from frazil.spark.attached.sessions import attach, attach_each
from frazil.spark.hadoop.stores import stores_of
from frazil.spark.session.facts import prepare_session, take_cache_sizes


@dataclass(frozen=True, slots=True, eq=False)
class ConfiguredLakes:
    """Catalogs that sessions get as lakes.

    Attributes:
        catalogs: by the names that stand before their tables.
        current: the lake, and the namespace, that names without a prefix mean; Spark's own unless
            given.
    """

    catalogs: Mapping[str, Catalog]
    current: Identifier = ()

    def attach_each(self) -> None:
        """Attach them to every session of this process, when it first asks for a table."""
        attach_each(self.attach)

    def attach(self, spark: SparkSession) -> None:
        """Attach them to a session.

        Raises:
            ValidationError: a name is taken by one of Spark's catalogs or by another lake.
        """
        prepare_session(spark)
        for name, catalog in self.catalogs.items():
            take_cache_sizes(spark, catalog.caches)
            names = attach(spark, catalog, name=name, owner=self)
            if self.current and self.current[0] == name:
                # The namespace need not be there: programs as dbt make it themselves.
                names.use(name, self.current[1:])


def configured_lakes(
    names: Sequence[str] = (),
    *,
    properties: Mapping[str, str] | None = None,
    current: Identifier = (),
) -> ConfiguredLakes:
    """Return catalogs of environment and file as lakes; a hyphen in a name is an underscore.

    Args:
        names: which ones; all unless given.
        properties: of each of them, over what is configured.
        current: the lake, and the namespace, that names without a prefix mean.

    Raises:
        ConfigurationError: nothing is configured, or a setting is missing or malformed.
        ValidationError: `current` is none of them.
    """
    chosen = names or configured_names()
    if not chosen:
        raise ConfigurationError(
            "no catalog is configured: set FRAZIL_CATALOG__NAME__URI, or write ~/.frazil.yaml"
        )
    configs = [resolve(name, properties or {}) for name in chosen]
    catalogs = {
        config.name.replace("-", "_"): open_catalog(config, stores=stores_of(config.properties))
        for config in configs
    }
    if current and current[0] not in catalogs:
        raise ValidationError(
            f"{current[0]!r} is none of the lakes, which are {', '.join(catalogs)}"
        )
    return ConfiguredLakes(catalogs, current)
