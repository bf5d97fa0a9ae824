"""Fixtures that several files use, and the markers that follow from them."""

import gc
import os
import zlib

import pytest

from dobandit.storage import open_storage
from helpers.postgres import roomy_memory, running_server

os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")  # which is made for thousands that nobody reads
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")  # workers load Dask once
os.environ.setdefault("DOBANDIT_COMPILE", "always")  # or what runs would depend on what earlier tests compiled
gc.disable()  # until all tests are found: looking for garbage in what stays takes a third of that time
pytest.register_assert_rewrite("dobandit.testing")
if memory := roomy_memory():  # where databases of tests need not wait for a disk that others keep busy
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)

# What a test needs besides Python, told by the fixtures it uses; `make quick` leaves these out.
NEEDS = {
    "postgres_server": "postgres",
    "database": "postgres",
    "browser": "browser",
    "house": "server",
    "listening_service": "server",
    "zygote": "processes",
    "fixed_seeds": "statistics",
}


SHARE = float(
    os.environ.get("DOBANDIT_EXAMPLES", "1")
)  # `make quick`: of the cases of a law this share, always the same


def pytest_collection_modifyitems(items):
    for item in items:
        for fixture in NEEDS.keys() & set(item.fixturenames):
            item.add_marker(NEEDS[fixture])
    items[:] = [item for item in items if "one_of_many" not in item.fixturenames or _in_share(item)]


def _in_share(item):
    return zlib.crc32(item.nodeid.encode()) < SHARE * 2**32


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    """Modules and tests stay until the end: collecting garbage need not walk through them, half a second each time. It
    is looked for less often than usual: compiling makes millions of objects that stay."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


@pytest.fixture(autouse=True)
def _empty_memory():
    """The storage in memory is one for the whole process: what a test leaves there is no other test's business."""
    yield
    kept = open_storage("memory")
    for experiment in kept.experiments():
        kept.delete(experiment.name)


@pytest.fixture
def one_of_many():
    """Marks tests that are cases of one law; `make quick` takes a share of them (see `SHARE`)."""


@pytest.fixture(scope="session")
def postgres_server():
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def database(postgres_server):
    return postgres_server.new_database()


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
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
