"""Fixtures that several files use."""

import pytest

from dobandit.experiment.storage import open_storage
from postgres import running_server

pytest.register_assert_rewrite("dobandit.testing")


@pytest.fixture(autouse=True)
def _empty_memory():
    """The storage in memory is one for the whole process: what a test leaves there is no other test's business."""
    yield
    kept = open_storage("memory")
    for experiment in kept.experiments():
        kept.delete(experiment.name)


@pytest.fixture(scope="session")
def postgres_server():
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def database(postgres_server):
    return postgres_server.new_database()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def storage(request, tmp_path):
    """Each kind of storage in turn."""
    if request.param == "postgresql":
        url = request.getfixturevalue("database")
    else:
        url = {"memory": "memory", "sqlite": f"sqlite:///{tmp_path}/spring.db"}[request.param]
    opened = open_storage(url)
    yield opened
    for experiment in opened.experiments():
        opened.delete(experiment.name)
    opened.close()
