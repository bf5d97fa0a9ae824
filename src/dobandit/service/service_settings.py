"""How a service is run: who may reach it, and how much one may ask of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dobandit.graph.causal_graph import CausalGraph

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MEGABYTE = 2**20


@dataclass(frozen=True)
class Settings:
    """The defaults suit a service on loopback.

    allowed_hosts  the names under which it is reached, without ports: whatever else a request calls it is refused
    port           of this service, so that two of them on one machine keep their cookies apart
    https          people reach it over HTTPS, through a reverse proxy: cookies then never travel in the clear
    login          whether a one-time login link is made: only where nobody but this machine reaches the service
    """

    allowed_hosts: tuple[str, ...] = LOOPBACK
    port: int = 8765
    https: bool = False
    login: bool = True
    most_bytes: int = 16 * MEGABYTE  # of a request's body
    body_seconds: float = 20.0  # in which a body must have arrived
    most_connections: int = 500
    most_at_once: int = 64  # requests under way; more are told to come back
    most_streams: int = 100  # event streams under way
    rate: float = 2000.0  # requests a second, of one visitor
    stranger_rate: float = 20.0  # requests a second of one address that nobody knows
    most_nodes: int = 2000  # of a graph that comes over HTTP
    most_edges: int = 20_000
    session_seconds: float = 12 * 3600.0
    token_seconds: float = 1.0  # for which a token that was looked up counts as valid
    answer_seconds: float = 7 * 86400.0  # for which the answer to an Idempotency-Key is kept
    most_kept: int = 128  # experiments in memory: those unused for longest go first, and are read again when needed
    look_seconds: float = 1.0  # between two looks of an event stream at a log
    read_at_once: int = 3_000  # closed trials that are read while a visitor waits for a page; more are read by a thread
    page_seconds: float = 0.5  # for which a visitor waits for the answers of several contexts
    newer_seconds: float = 0.15  # for which a visitor waits for answers that are newer than those at hand
    warm: bool = True  # whether kernels are loaded at once, or by the first who needs them
    clock: Callable[[], float] = time.time

    def too_large(self, graph: CausalGraph) -> str:
        """What to say of a graph that is too large to come over HTTP; nothing where it is not."""
        if len(graph) <= self.most_nodes and graph.edge_count <= self.most_edges:
            return ""
        return (
            f"a graph has at most {self.most_nodes:,} variables and {self.most_edges:,} edges here, but this one has "
            f"{len(graph):,} and {graph.edge_count:,}. Create its experiment with the command line."
        )
