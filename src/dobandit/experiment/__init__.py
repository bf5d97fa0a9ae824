"""Live experiments: ask what to set, tell what was seen; the log is kept in a storage."""
