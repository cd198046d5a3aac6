"""One transaction over several tables of a lake, by methods and by statements."""

from frazil.spark.lake_transaction.transaction import LakeTransaction

__all__ = ["LakeTransaction"]
