"""Another name of `frazil.format.partitions.partitioning`."""

from __future__ import annotations

from frazil.format.partitions.partitioning import PartitionField, PartitionSpec, spec_for

__all__ = ["PartitionField", "PartitionSpec", "spec_for"]
