"""Tables behind a server of Iceberg's REST protocol."""
