"""How a Spark 4.1 is set up that has the Java runtime in it."""

from jvm_options import JVM_OPTIONS

JAVA_PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.xerial:sqlite-jdbc:3.46.1.3"
)
SETTINGS = {
    "spark.jars.packages": JAVA_PACKAGES,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "3g",
    "spark.driver.extraJavaOptions": JVM_OPTIONS,
    # It notes the Python line of every column, with a failed import of IPython each time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Pages of 64 MB for each sort would fill the memory for a few rows.
    "spark.buffer.pageSize": "1m",
    # Compiling a query would take longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.geospatial.enabled": "true",
}
