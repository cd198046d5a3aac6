"""The table handle and its operations; every change is a commit."""
