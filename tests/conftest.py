"""Fixtures that several files use."""

import pytest

from postgres import running_server


@pytest.fixture(scope="session")
def postgres_server():
    with running_server() as server:
        yield server
