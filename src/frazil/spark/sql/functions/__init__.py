"""The functions of a lake: `system.bucket` and the other transforms of partitions."""
