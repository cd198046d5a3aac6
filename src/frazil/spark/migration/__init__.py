"""Files and tables of Spark become Iceberg tables; no data file is written anew."""
