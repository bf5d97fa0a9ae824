"""What several test files share: worlds to play in, servers to call, processes to kill."""
