"""The commands on live experiments."""
