"""Answers from long logs read what is new, and no more."""

import math
from collections import Counter
from itertools import accumulate, pairwise

import numpy as np
import pytest

from dobandit import UCB, CausalGraph
from dobandit.errors import ExperimentError, StorageError
from dobandit.experiment.accumulator import StatusSums
from dobandit.experiment.replayed_learner import ReplayedLearner
from dobandit.policy.engine import Action, Rounds, no_context
from dobandit.storage import open_storage
from dobandit.storage.sql import SQLStorage
from dobandit.testing.storage_transactions import add
from helpers.experiments import Clock, again, case, flat, make, numbered, played, rounds_learned
from helpers.storages import id_of


def test_trials_in_pages():
    experiment = case("random")
    for i in range(7):
        trial = experiment.ask()
        if i % 3 == 1:
            experiment.tell_failed(trial.number, "rain")
        elif i % 3 == 2:
            experiment.tell(trial.number, {"Y": 1})
    every = experiment.trials()
    for state in (None, "pending", "told", "failed", "abandoned"):
        some = [row for row in every if state in (None, row["state"])]
        assert experiment.trials(state=state) == some
        assert experiment.trials(state=state, last=2) == some[-2:]
        assert experiment.trials(2, 2, state) == [row for row in some if row["trial"] > 2][:2]
    assert experiment.trials(last=0) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"after": -2}, "number of a trial"),
        ({"after": 1.5}, "number of a trial"),
        ({"limit": -1}, "limit is a whole number"),
        ({"last": True}, "last is a whole number"),
        ({"last": 3, "limit": 2}, "Give one of the two"),
        ({"state": "open"}, "pending, told, failed or abandoned"),
    ],
)
def test_pages_that_are_none_are_refused(wrong, words):
    with pytest.raises(ExperimentError, match=words):
        case("random").trials(**wrong)


# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch):
    """How many rows of the log each kind of reading has read."""
    rows = Counter()
    for name in ("closed_fields", "closed_since"):
        plain = getattr(SQLStorage, name)

        def counting(self, *arguments, plain=plain, name=name):
            found = plain(self, *arguments)
            rows[name] += len(found)
            return found

        monkeypatch.setattr(SQLStorage, name, counting)

    def whole(*_, **__):
        raise AssertionError("the whole log is read")

    monkeypatch.setattr(SQLStorage, "rows", whole)
    return rows


def add_copies(experiment, count):
    """As many trials more as the last one, which was recorded."""
    trials = experiment.storage.counters(id_of(experiment))[0]
    add(experiment.storage, id_of(experiment), *[experiment.log.stored_trial(trials - 1)] * count)


ANSWERS = {
    "status": lambda e: e.status(),
    "best_observed": lambda e: e.best_observed(),
    "recommend": lambda e: e.recommend(),
    "diagnose": lambda e: e.diagnose(),
    "estimates": lambda e: e.estimates(),
    "explain": lambda e: e.explain(e.storage.counters(id_of(e))[0] - 1),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_reads_what_is_new(tmp_path, read, name):
    experiment = make(open_storage(str(tmp_path / "spring.db")))
    for i in range(60):
        trial = experiment.ask()
        experiment.tell(trial, {name: trial.do.get(name, i % 2) for name in experiment.graph.nodes})
    experiment.ask()
    ANSWERS[name](experiment)
    experiment.tell(60, {"Y": 1})
    experiment.ask()
    read.clear()
    ANSWERS[name](experiment)
    assert max(read.values(), default=0) <= 2
    read.clear()
    ANSWERS[name](experiment)
    assert sum(read.values()) == 0
    experiment.close()


def test_a_status_of_a_log_that_nobody_has_open_reads_little(tmp_path, read):
    """The sums are kept at every thousandth trial that is closed."""
    experiment = make(open_storage(str(tmp_path / "spring.db")))
    experiment.record({"X3": 1}, {"Y": 1})
    add_copies(experiment, 1990)
    for i in range(30):
        experiment.tell(experiment.ask(), {"Y": i % 2})
    read.clear()
    status = again(experiment).status()
    assert sum(read.values()) < 2 * 30
    assert status == experiment.status()
    experiment.close()


@pytest.mark.filterwarnings("ignore:just these rounds were imported before")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_log_that_is_read_in_parts_teaches_the_same(kind, tmp_path, request):
    """To the last bit, wherever the parts end."""
    storage = open_storage(str(tmp_path / "spring.db") if kind == "sqlite" else request.getfixturevalue("database"))
    experiment = make(storage)
    rounds = [({"X3": i % 2}, {"X2": i % 3 % 2, "Y": i // 2 % 2}) for i in range(40)]
    experiment.import_history(numbered(rounds))
    for i in range(10):
        first, second = experiment.ask(), experiment.ask()
        experiment.tell(second, {"Y": i % 2} if i != 5 else [{"Y": 1}, {"Y": 0}])
        experiment.tell(first, {"Y": i % 3 % 2})
    experiment.import_history(numbered(rounds))
    one_by_one = ReplayedLearner(experiment.definition, experiment.columns)
    for trial in storage.closed_since(id_of(experiment), 0):
        one_by_one.add([trial])
    for part in (7, 16, 100):
        replica = ReplayedLearner(experiment.definition, experiment.columns)
        while replica.position < 100:
            replica.follow(storage, id_of(experiment), min(replica.position + part, 100))
        assert (replica.position, replica.doubts) == (100, one_by_one.doubts)
        assert flat(replica.learner.engine.state) == flat(one_by_one.learner.engine.state)
    then = ReplayedLearner(experiment.definition, experiment.columns)
    then.follow(storage, id_of(experiment), 33)
    assert then.position == 33
    storage.delete("spring")
    experiment.close()


def plain_status(rows, now):
    """What a status says, from the rows of the log."""
    told = [row for row in rows if row["state"] == "told"]
    rounds = [(one, row) for row in told for one in row_rounds(row)]
    seen = [one["Y"] for one, _ in rounds if "Y" in one]
    return {
        "trials": len(rows),
        **{state: sum(row["state"] == state for row in rows) for state in ("pending", "told", "failed", "abandoned")},
        "late": sum(row["late"] for row in rows),
        "partial": sum(row["partial"] for row in rows),
        "rounds": len(rounds),
        "mean_target": math.fsum(seen) / len(seen) if seen else None,
    }


def row_rounds(row):
    seen = row["observation"] if isinstance(row["observation"], list) else [row["observation"]]
    return [one for one in seen for _ in range(one.get("count", 1))]


@pytest.mark.parametrize("name", ["random", "continuous"])
def test_the_sums_of_a_status(name):
    """By hand from the rows, in this object, in one that is new, and in one that finds sums that were kept."""
    clock = Clock()
    experiment = case(name, clock=clock, lease=5.0)
    experiment.record({}, {"Y": 1})
    add_copies(experiment, 990)
    for i in range(24):
        trial = experiment.ask()
        clock.now += 6.0 if i % 6 == 0 else 1.0
        seen = {"Y": 1 if i % 2 else 0.1 * (i % 3)} if name == "continuous" else {"Y": i % 2, "X2": 1}
        if i % 5 == 0:
            experiment.tell_failed(trial.number)
        elif i % 7 == 0:
            experiment.abandon(trial.number)
        elif i % 4 == 0:
            experiment.tell(trial, [seen, seen, seen])
        elif i % 3:
            experiment.tell(trial, seen)
        if i % 8 == 7:
            status, expected = experiment.status(), plain_status(experiment.trials(), clock.now)
            assert {key: getattr(status, key) for key in expected} == pytest.approx(expected, rel=1e-15)
            assert again(experiment, clock).status() == status
    assert experiment.storage.tally(id_of(experiment))[0] >= 1000
    experiment.storage.keep_tally(id_of(experiment), 10**6, "{not what we wrote")
    assert StatusSums.kept_in(experiment.storage, id_of(experiment), experiment.columns).position == 0
    assert again(experiment, clock).status() == experiment.status()


def test_a_log_is_added_up_in_parts(storage):
    experiment = make(storage)
    experiment.record({}, {"Y": 1})
    add_copies(experiment, 20_499)
    status = again(experiment).status()
    assert (status.told, status.rounds, status.mean_target) == (20_500, 20_500, 1.0)


def test_sums_that_may_not_be_kept_are_not_missed(tmp_path, monkeypatch):
    def refusing(*_):
        raise StorageError("no")

    monkeypatch.setattr(SQLStorage, "keep_tally", refusing)
    experiment = make(open_storage(str(tmp_path / "spring.db")))
    experiment.record({"X3": 1}, {"Y": 1})
    add_copies(experiment, 998)
    experiment.record({"X3": 1}, {"Y": 1})
    assert experiment.status().told == 1000
    experiment.close()


def test_a_tell_is_told_whatever_becomes_of_the_sums(monkeypatch):
    def failing(*_):
        raise StorageError("damaged")

    experiment = make()
    experiment.record({}, {"Y": 1})
    add_copies(experiment, 998)
    trial = experiment.ask()
    monkeypatch.setattr(StatusSums, "follow", failing)
    assert experiment.tell(trial, {"Y": 1}).repeated is False
    add_copies(experiment, 999)
    assert experiment.record({}, {"Y": 1}) == 1999
    add_copies(experiment, 999)
    assert experiment.import_history([({}, {"Y": 1})]) == range(2999, 3000)
    assert {row["state"] for row in experiment.trials()} == {"told"}


def test_explaining_counts_what_was_under_way(tmp_path):
    """Trials that were closed long after, out of order, and some that still are pending."""
    experiment = make(open_storage(str(tmp_path / "spring.db")))
    first = experiment.ask(n=6)
    for number in (3, 0):
        experiment.tell(number, {"Y": 1})
    asked = experiment.ask()
    for trial in (first[5], first[1]):
        experiment.tell(trial, {"Y": 0})
    for _ in range(5):
        experiment.record({}, {"Y": 1})
    assert [experiment.explain(n).pending for n in range(7)] == [0, 1, 2, 3, 4, 5, 4]
    assert experiment.explain(asked.number).rounds == 2
    experiment.close()


@pytest.mark.parametrize("name", ["ucb", "causal-auto"])
def test_explaining_goes_on_from_what_was_kept_on_the_way(tmp_path, monkeypatch, name):
    experiment = played(name, 70, open_storage(str(tmp_path / "spring.db")))
    learned, reader = rounds_learned(monkeypatch), again(experiment)
    assert reader.recommend() == experiment.recommend()
    kept = [one.position for one in reader.log.state.checkpoints.kept]
    assert 32 <= len(kept) <= 64
    apart = max(b - a for a, b in pairwise([0, *kept, 70]))
    for number in (69, 3, 30, 31, 12):
        learned.clear()
        found = reader.explain(number)
        assert sum(learned) <= apart < 5
        assert found == again(experiment).explain(number)  # which begins at the beginning
    experiment.close()


def test_estimates_of_arms_are_sums_in_the_order_of_the_log():
    graph = CausalGraph([("a", "y"), ("b", "y")], target="y")
    engine = UCB().start(graph, budget=1).engine
    a, b, y = (graph.nodes.index(name) + 1 for name in "aby")
    values, was_set = np.ones((400, 4)), np.zeros((400, 4), dtype=bool)
    values[:, y] = np.arange(400) % 5 / 7
    values[::9, y] = np.nan
    was_set[::2, a] = was_set[::4, b] = True
    engine.update(Rounds(values, was_set, np.ones(400, dtype=np.int64)))
    for ids, rows in (((), values[1::2]), ((a,), values[2::4]), ((a, b), values[::4])):
        told = [reward for reward in rows[:, y].tolist() if not math.isnan(reward)]
        estimate = engine.predict(Action(ids, (1.0,) * len(ids)), no_context(3))
        assert estimate.value == [*accumulate(told)][-1] / len(told)
