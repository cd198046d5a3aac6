"""The metadata tables as Spark DataFrames, with the Java runtime's names, columns and types."""

from frazil.spark.metadata_frames.frames import MetadataFrames

__all__ = ["MetadataFrames"]
