"""Results as plain data, pictures and text."""
