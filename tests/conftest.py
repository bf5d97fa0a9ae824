"""Fixtures that several files use, and the order of the tests where two workers share them."""

import gc
import importlib
import os
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.pathlib import import_path

from dobandit.experiment.storage import open_storage
from helpers.postgres import roomy_memory, running_server

os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")  # which is made for thousands that nobody reads
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")  # workers load Dask once
gc.disable()  # until all tests are found: looking for garbage in what stays takes a third of that time
pytest.register_assert_rewrite("dobandit.testing")
if memory := roomy_memory():  # where databases of tests need not wait for a disk that others keep busy
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)

# In an empty clone much time goes into compiling. The suite of policies needs most kernels; it is one worker's, while
# the other begins with what needs none.
SUITE = "test_policy_suite"
IMPORTED_FIRST = {"gw0": ("scipy.stats", "pandas", "altair", "networkx"), "gw1": ("numba.core.typed_passes", "fastapi")}
WITHOUT_KERNELS = (
    "test_storage", "test_charts", "test_report_pages", "test_statistics", "test_signs", "test_inference",
    "test_formats", "test_formats_hostile", "test_formats_files", "test_random_models", "test_transcribed_learners",
    "test_assumptions", "test_fit", "test_latent", "test_networks", "test_transcription", "test_history", "test_graph",
    "test_rounds", "test_sampling", "test_tables", "test_paths", "test_studies", "test_links",
    "test_texts", "test_drawn", "test_model_files", "test_storage_damage",
)  # fmt: skip


def pytest_sessionstart(session):
    """In an empty clone modules have to be compiled before they are imported, and packages in a new environment. Of two
    workers each begins with other packages, and one with the last module, so that they meet in the middle and each
    finds on the disk what the other has compiled."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    for package in IMPORTED_FIRST.get(worker, ()):
        with suppress(ImportError):
            importlib.import_module(package)
    if worker == "gw1":
        for path in sorted(Path(__file__).parent.rglob("test_*.py"), reverse=True):
            with suppress(Exception):  # which is said when it is collected
                import_path(path, mode="importlib", root=session.config.rootpath, consider_namespace_packages=False)


def pytest_collection_modifyitems(items):
    """Two workers take a half of the tests each and begin at its front: there one compiles kernels that the other finds
    on the disk afterwards."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    first, second, rest = [], [], []
    for item in items:
        name = item.path.stem
        (first if name == SUITE else second if name in WITHOUT_KERNELS else rest).append(item)
    half = max(len(items) // 2 - len(first), 0)
    items[:] = [*first, *rest[:half], *second, *rest[half:]]


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
