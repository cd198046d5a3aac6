"""The manifests that an operation reads, filters, merges and writes."""
