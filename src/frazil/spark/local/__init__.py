"""A Spark on this machine alone: its Java, its settings, what its virtual machine says."""
