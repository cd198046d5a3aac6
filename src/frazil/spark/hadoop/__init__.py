"""Files by the file systems of Spark's own Hadoop (``io=hadoop``)."""
