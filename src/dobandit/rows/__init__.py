"""Rows: what people give, and what the log keeps."""
