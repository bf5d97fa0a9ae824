"""What the edges say of a thing as JSON: one shape for the command line's --json, for HTTP and for its client."""
