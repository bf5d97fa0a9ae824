"""What is stored or imported is never run."""

import ast
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

import dobandit as dob
from dobandit.errors import DobanditError, PolicyError, StorageError
from helpers.zygote import GRAPH, NAME, create, intact, refused, told

# -- what is stored or imported is never run ---------------------------------------------------------------------

FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "joblib",
    "yaml",
    "code",
    "ctypes",
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "Popen", "load_extension"}
FORBIDDEN_CALLS |= {"read_pickle", "to_pickle", "enable_load_extension", "PickleType"}


def test_the_sources_run_nothing_that_they_read():
    home = Path(dob.__file__).parent
    sources = [path for room in ("experiment", "rows", "storage") for path in (home / room).glob("**/*.py")]
    assert len(sources) > 20
    for node in (node for source in sources for node in ast.walk(ast.parse(source.read_text("utf-8")))):
        imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not FORBIDDEN_MODULES & {name.partition(".")[0] for name in imported}
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in ("re.compile", "statement.compile"):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            assert called not in FORBIDDEN_CALLS, ast.unparse(node)
            assert "allow_pickle" not in {keyword.arg for keyword in node.keywords}


RUN = {"exec", "compile", "import", "marshal.loads", "marshal.load", "pickle.find_class", "ctypes.dlopen"}
RUN |= {"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "sqlite3.load_extension"}
EVIL = (
    "__import__('os').system('touch owned')",
    "'); DROP TABLE trials; DROP TABLE experiments; --",
    "%s %(a)s :a ? {0}",
)
EVIL_JSON = (
    *("", "null", "[]", "{}", "{", "[" * 100_000, "[" * 50_000 + "]" * 50_000, '{"a":' * 50_000),
    *("1" * 100_000, "1e999", '{"version": 1}', '{"version": [[]]}', EVIL[0], json.dumps(EVIL[1])),
    '{"__reduce__": ["os.system", ["touch owned"]], "py/object": "os.system", "!!python/object/apply:os.system": 1}',
)


class Touch:
    def __reduce__(self):
        return os.system, ("touch owned",)


def hostile(storage, folder):
    import pickle

    os.chdir(folder)
    Path("rounds.pickle").write_bytes(pickle.dumps(Touch(), 0))
    Path("rounds.csv").write_text(f'Y\n"{EVIL[0]}"\n')
    watching, ran = False, []
    sys.addaudithook(lambda event, arguments: ran.append((event, arguments)) if watching and event in RUN else None)
    experiment = create(storage)
    experiment.tell(experiment.ask(n=2)[0].number, {"Y": 1})
    for name in EVIL:
        dob.create_experiment(name, GRAPH, budget=1, storage=storage)
    document = experiment.definition.to_text()
    for watching in (False, True):  # noqa: B007 (what the first pass imports is not the storage's doing)
        hostile_names(storage)
        hostile_documents(storage, json.loads(document))
        change(storage, "UPDATE experiments SET document = ?", [(document,)])
        hostile_rows(storage)
        for given in ("rounds.pickle", "rounds.csv", EVIL, [{"Y": EVIL[0]}], [{EVIL[0]: 1}], [(EVIL[0], {"Y": 1})]):
            refused(DobanditError, experiment.import_history, given)
    watching = False
    assert ran == [], ran
    assert not Path("owned").exists()
    assert [number for number, _ in told(experiment)] == [0]
    experiment.close()
    assert intact(storage)


def hostile_names(storage):
    for name in EVIL:
        opened = dob.open_experiment(name, storage)
        opened.tell(opened.ask().number, {"Y": 0})
        opened.close()
        refused(DobanditError, dob.open_experiment, name + "!", storage)
        dob.rename_experiment(name, name + "?", storage)
        dob.rename_experiment(name + "?", name, storage)
    assert len(dob.list_experiments(storage)) == 4


def hostile_documents(storage, document):
    """Not only whole documents, but every part of a sound one."""
    texts = [*EVIL_JSON, *(json.dumps({**document, key: evil}) for key in document for evil in (EVIL[0], [[]], 1e308))]
    policies = [{"name": 7}, {"name": "blm-lr", EVIL[0]: 1}, {"name": ["os.system"]}, {"name": "blm-lr", "region": []}]
    texts += [json.dumps({**document, "policy": policy}) for policy in policies]
    texts += [json.dumps({**document, "graph": "@"}).replace('"@"', "[" * 5000 + "]" * 5000)]
    messages = []
    for text in texts:
        change(storage, "UPDATE experiments SET document = ?", [(text,)])
        try:
            with closing(dob.open_experiment(NAME, storage)) as opened:
                opened.recommend()
        except StorageError as error:
            messages.append(str(error))
    assert max(map(len, messages)) < 1000
    assert len(messages) > 0.9 * len(texts)  # some change nothing: no links
    for name in (EVIL[0], "os.system", "dobandit.policies:os"):  # a policy that may be somebody's, and is not here
        change(storage, "UPDATE experiments SET document = ?", [(json.dumps({**document, "policy": {"name": name}}),)])
        with closing(dob.open_experiment(NAME, storage)) as opened:
            message = refused(PolicyError, opened.recommend)
            assert name in message
            assert len(message) < 1000
            refused(PolicyError, opened.ask)


def hostile_rows(storage):
    for column in ("do", "observation", "available"):
        with closing(sqlite3.connect(storage)) as connection:
            before = connection.execute(f"SELECT {column}, number FROM trials WHERE experiment = 1").fetchall()
        for text in EVIL_JSON[0 if column != "available" else 1 :]:
            if (column, text) == ("available", "[]"):
                continue  # nothing could be set
            change(storage, f"UPDATE trials SET {column} = ? WHERE experiment = 1", [(text,)])
            with closing(dob.open_experiment(NAME, storage)) as opened:
                refused(StorageError, opened.trials)
                if column != "available":
                    refused(StorageError, opened.ask)
        change(storage, f"UPDATE trials SET {column} = ? WHERE experiment = 1 AND number = ?", before)
    with closing(dob.open_experiment(NAME, storage)) as opened:
        assert len(opened.trials()) == 2


def change(storage, statement, rows):
    with closing(sqlite3.connect(storage)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.executemany(statement, rows)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_hostile_file_is_refused_and_nothing_in_it_is_run(zygote, url, tmp_path):
    zygote.run(hostile, url, tmp_path)
