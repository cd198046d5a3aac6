"""What a check looks at: metadata, files, deletes."""
