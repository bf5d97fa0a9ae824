"""What only a server can do: vanish, come back, and be told a password."""

import threading
from contextlib import ExitStack

import pytest

from dobandit.errors import StorageError
from dobandit.rows.stored_trial import ASKED, StoredTrial
from dobandit.storage import open_storage
from helpers.storages import SEEN, add

KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = '{}'"


@pytest.fixture
def url(postgres_server):
    return postgres_server.new_database()


@pytest.fixture
def storage(url):
    opened = open_storage(url)
    yield opened
    opened.close()


@pytest.fixture
def cut(postgres_server, url):
    """Breaks all connections to the database."""
    return lambda: postgres_server.execute(KILL.format(url.rpartition("/")[2]))


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_ways_to_name_a_database(url, scheme):
    storage = open_storage(scheme + url[url.index("://") :])
    assert storage.create("spring", "{}", 1.0).name == "spring"
    assert "geheim" not in storage.url
    assert storage.url.startswith("postgresql://tester:***@127.0.0.1")
    storage.close()


def test_a_broken_idle_connection_is_replaced_unnoticed(storage, cut):
    experiment = storage.create("spring", "{}", 1.0).id
    cut()
    assert add(storage, experiment, SEEN) == 0
    cut()
    assert storage.find("spring").trials == 1
    cut()
    storage.rename("spring", "summer")
    cut()
    storage.create("autumn", "{}", 1.0)


def test_all_broken_idle_connections_are_replaced_at_once(storage, cut):
    """Whoever meets one of them tries once more, and must not meet the next."""
    storage.create("spring", "{}", 1.0)
    with ExitStack() as several:
        for _ in range(4):
            several.enter_context(storage.database.reader.connect()).exec_driver_sql("SELECT 1")
    cut()
    assert storage.find("spring").name == "spring"


def test_a_connection_that_breaks_within_a_block_stores_nothing(storage, cut):
    experiment = storage.create("spring", "{}", 1.0).id

    def broken():
        with storage.writing(experiment) as writer:
            writer.add([SEEN])
            cut()
            writer.add([SEEN])

    with pytest.raises(StorageError, match="Nothing of this was stored"):
        broken()
    assert storage.find("spring").trials == 0
    assert add(storage, experiment, SEEN) == 0


def test_a_connection_that_breaks_at_the_commit_is_not_called_stored_or_not(storage, cut):
    experiment = storage.create("spring", "{}", 1.0).id

    def broken():
        with storage.writing(experiment) as writer:
            writer.add([SEEN])
            writer.finish = cut  # the counters are the last statement before the commit

    with pytest.raises(StorageError, match=r"not known whether it was.*Look at"):
        broken()
    assert storage.find("spring").trials == 0


def test_a_server_that_stops_and_starts_again(postgres_server, storage):
    experiment = storage.create("spring", "{}", 1.0).id
    postgres_server.stop()
    try:
        for refused in (lambda: add(storage, experiment, SEEN), lambda: storage.find("spring")):
            with pytest.raises(StorageError, match=r"is not there.*Check that the server runs") as caught:
                refused()
            assert "geheim" not in str(caught.value)
    finally:
        postgres_server.start()
    assert add(storage, experiment, SEEN) == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [(lambda url: url.rpartition("/")[0] + "/nosuch", "createdb"), (lambda url: url + "?sslmode=odd", "sslmode")],
)
def test_wrong_addresses_do_not_tell_the_password(url, change, says):
    with pytest.raises(StorageError, match=says) as caught:
        open_storage(change(url)).find("spring")
    assert "geheim" not in str(caught.value)


def test_secrets_among_the_options_stay_secret(url):
    storage = open_storage(url.replace(":geheim", "") + "?password=geheim&connect_timeout=5")
    assert "geheim" not in storage.url
    assert storage.find("spring") is None
    storage.close()


def test_a_missing_driver_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(StorageError, match=r"dobandit\[postgres\]"):
        open_storage("postgresql://h/d")


def test_a_server_that_prefers_another_isolation(postgres_server, url):
    postgres_server.execute(
        f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_isolation = 'serializable'"
    )
    storages = [open_storage(url) for _ in range(4)]
    experiment = storages[0].create("spring", "{}", 1.0).id
    errors = []

    def work(storage):
        try:
            for _ in range(25):
                add(storage, experiment, StoredTrial(0, ASKED, "[1]"))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[storage]) for storage in storages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [trial.number for trial in storages[0].rows(experiment)] == list(range(100))
    for storage in storages:
        storage.close()


def test_a_reader_without_the_right_to_write(postgres_server, url, storage):
    experiment = storage.create("spring", "{}", 1.0).id
    name = url.rpartition("/")[2]
    postgres_server.execute("CREATE ROLE reader LOGIN")
    postgres_server.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", name)
    reader = open_storage(url.replace("tester:geheim", "reader"))
    assert reader.find("spring").trials == 0
    with pytest.raises(StorageError, match=r"permission denied.*Ask its owner"):
        add(reader, experiment, SEEN)
    reader.close()


def test_pages_of_experiments_come_in_one_order_whatever_the_language_of_the_server(postgres_server):
    """A dictionary has a before B; names are compared by the numbers of their characters, as everywhere else."""
    postgres_server.execute(
        "CREATE DATABASE english TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
    )
    storage = open_storage(postgres_server.url("english"))
    names = ["B", "Z", "a", "b", "c d", "Ä"]
    for name in reversed(names):
        storage.create(name, "{}", 0.0)
    assert [one.name for one in storage.experiments(limit=3)] == names[:3]
    assert [one.name for one in storage.experiments(after="a", limit=9)] == names[3:]
    assert [one.name for one in storage.experiments(before="a", limit=9)] == names[:2]
    storage.close()
