"""Where bytes live: files, Avro manifests, Parquet footers."""
