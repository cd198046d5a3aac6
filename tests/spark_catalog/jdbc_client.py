"""Hive's JDBC driver, whose classes are among PySpark's own, as a client of a server."""

import pytest
from py4j.protocol import Py4JJavaError


class Driver:
    """A connection of the driver."""

    def __init__(self, jvm, port, path=""):
        self.jvm = jvm
        url = f"jdbc:hive2://127.0.0.1:{port}/{path}"
        self.connection = jvm.org.apache.hive.jdbc.HiveDriver().connect(
            url, jvm.java.util.Properties()
        )

    def run(self, text):
        """The rows of a statement, as texts."""
        statement = self.connection.createStatement()
        try:
            has_rows = statement.execute(text)
            return rows_of(statement.getResultSet()) if has_rows else []
        finally:
            statement.close()

    def fails(self, text):
        """The words of a statement's error."""
        with pytest.raises(Py4JJavaError) as caught:
            self.run(text)
        return str(caught.value.java_exception.getMessage())

    @property
    def lists(self):
        """What the driver tells of what there is."""
        return self.connection.getMetaData()


def rows_of(result, *columns):
    """The rows of a result: some columns, or all."""
    asked = columns or range(1, result.getMetaData().getColumnCount() + 1)
    found = []
    while result.next():
        found.append(tuple(result.getString(column) for column in asked))
    return found
