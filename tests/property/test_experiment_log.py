"""Whatever happens in whatever order: the log is what plain rules say, and every ask follows from it alone."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

import dobandit as dob
from dobandit.errors import ConflictError, InterventionError
from dobandit.oracle.rules import rules_of
from dobandit.storage import MemoryStorage
from helpers.experiments import Clock, PlainLog, flat, knowledge, numbered
from helpers.worlds import graphs, quietly, relaxed

POLICIES = [
    dob.BLMLR(radius_scale=0.1),
    dob.BLMLR(radius_scale=0.1, region="boxed"),
    dob.BLMLR(radius_scale=0.1, region="boxed", oracle="greedy"),
    dob.BGLMOFU(radius_scale=0.1, initial=3),
    dob.BGLMOFU(radius_scale=0.1, lambda_scale=0.0),
    dob.UCB(scale=0.5),
    dob.EpsilonGreedy(epsilon=0.3),
    dob.Random(),
]
LOGISTIC = {"name": "logistic", "shift": 1.0}
OPERATIONS = ["ask", "ask", "ask", "limited", "many", "tell", "tell", "tell", "fail", "abandon", "record", "import"]
OPERATIONS += ["reopen", "wait", "again", "conflict", "tell_many", "tell_many", "record_many"]


class Session:
    """An experiment held by two objects, and the plain log beside it."""

    def __init__(self, data, policy):
        draw = self.draw = data.draw
        self.graph = draw(graphs(2, 5))
        budget = draw(st.integers(0, min(2, len(self.graph.controllable))))
        linear = not isinstance(policy, dob.BGLMOFU) or draw(st.booleans())
        links, continuous = None if linear else LOGISTIC, linear and draw(st.booleans())
        seed, lease = draw(st.integers(0, 99)), draw(st.sampled_from([None, 5.0]))
        self.lease, self.continuous, self.clock = lease, continuous, Clock(100.25)
        first = dob.create_experiment(
            "e", self.graph, budget, policy, MemoryStorage(), None, seed, lease,
            links=links, continuous=continuous, clock=self.clock,
        )  # fmt: skip
        self.storage = first.storage
        self.objects = [first, self.fresh()]
        self.held = [{}, {}]  # by object: which hand-out of each trial it holds
        learned = "auto" if isinstance(policy, dob.CausalUCB) else links
        self.plain = PlainLog(self.graph, rules_of(budget), policy, seed, learned, None, continuous)

    def fresh(self):
        return dob.open_experiment("e", self.storage, self.clock)

    def run(self, operation):
        self.who = self.draw(st.integers(0, 1))
        self.experiment = self.objects[self.who]
        getattr(self, operation)()
        self.check()

    # -- what may happen ---------------------------------------------------------------------------------------------

    def ask(self, available=None, n=1):
        lease = self.draw(st.sampled_from([None, 3.0]))
        numbers, issued = [], []
        for _ in range(n):
            numbers.append(self.plain.ask(self.clock.now, self.lease if lease is None else lease, available))
            issued.append(self.plain.trials[numbers[-1]]["issued"])
        asked = self.experiment.ask(available, n, lease)
        for trial, number, times in zip(asked, numbers, issued, strict=True):
            wanted = self.plain.trials[number]
            assert (trial.number, trial.do, trial.issued) == (number, wanted["do"], times)
            assert repr(trial.predicted) == repr(wanted["predicted"])
            assert trial.interval == wanted["interval"] or not self.in_order
            self.held[self.who][number] = times

    def many(self):
        self.ask(n=self.draw(st.integers(2, 3)))

    def limited(self):
        names = self.draw(st.lists(st.sampled_from(self.graph.controllable), unique=True))
        before = json.dumps(self.plain.trials)
        try:
            self.plain.learner().propose(available=names)
        except InterventionError:
            over = [t for t in self.plain.trials if t["state"] == "pending" and t["expires"] is not None]
            if any(t["expires"] <= self.clock.now and set(t["do"]) <= set(names) for t in over):
                return self.ask(names)  # an old trial can be handed out where nothing new could
            try:
                self.experiment.ask(names)
            except InterventionError:
                assert json.dumps(self.plain.trials) == before
                return None
            raise AssertionError(f"{names} were enough for the experiment") from None
        return self.ask(names)

    def tell(self):
        number = self.some("pending")
        if number is None:
            return
        trial = self.plain.trials[number]
        seen = self.seen(trial["do"])
        if not set(seen) - set(trial["do"]):
            return
        late = trial["issued"] > self.held[self.who].get(number, 1)
        late = late or (trial["expires"] is not None and self.clock.now > trial["expires"])
        told = self.experiment.tell(number, seen)
        missing = tuple(name for name in self.graph.nodes if name not in self.plain.whole(trial["do"], seen))
        assert told[:6] == (number, late, bool(missing), False, 1, missing)
        assert {*missing} <= {*told.untaught} <= {*self.graph.nodes} - {*trial["do"]}
        self.plain.close(number, "told", seen, late)

    def many_rows(self, do):
        """Rows of one trial, and the same rows in other words: in another order, and summed up with counts."""
        rows = [seen for _ in range(self.draw(st.integers(2, 6))) if set(seen := self.seen(do)) - set(do)]
        rows += rows[: self.draw(st.integers(0, 6))]
        shuffled = self.draw(st.permutations(rows))
        half = self.draw(st.integers(0, len(rows)))
        return rows, [*shuffled[:half], *({**row, "count": 1} for row in shuffled[half:]), *self.nothing(rows)]

    def nothing(self, rows):
        return [{**row, "count": 0} for row in rows[:1]]

    def tell_many(self):
        number = self.some("pending")
        if number is None:
            return
        trial = self.plain.trials[number]
        rows, said = self.many_rows(trial["do"])
        if rows:
            late = trial["issued"] > self.held[self.who].get(number, 1)
            late = late or (trial["expires"] is not None and self.clock.now > trial["expires"])
            assert self.experiment.tell(number, said)[:5:4] == (number, len(rows))
            told = self.experiment.tell(number, rows)
            assert (told.repeated, told.late) == (True, late)
            self.plain.close_many(number, rows, late)

    def record_many(self):
        for do, _ in self.rounds(1):
            rows, said = self.many_rows(do)
            if rows:
                assert self.experiment.record(do, said) == self.plain.record_many(do, rows)

    def fail(self):
        number = self.some("pending")
        if number is not None:
            self.experiment.tell_failed(number, "rain")
            self.plain.close(number, "failed")

    def abandon(self):
        number = self.some("pending")
        if number is not None:
            self.experiment.abandon(number)
            self.plain.close(number, "abandoned")

    def rounds(self, most):
        found = []
        for _ in range(self.draw(st.integers(1, most))):
            names = [name for name in self.graph.nodes if name != self.graph.target]
            do = self.draw(st.dictionaries(st.sampled_from(names), st.integers(0, 1), max_size=2))
            seen = self.seen(do)
            if set(seen) - set(do):
                found.append((do, seen))
        return found

    def record(self):
        for do, seen in self.rounds(1):
            assert self.experiment.record(do, seen) == self.plain.record(do, seen)

    def load(self):
        rounds = self.rounds(8)
        if rounds:
            numbers = self.experiment.import_history(numbered(rounds))
            assert list(numbers) == [self.plain.record(do, seen) for do, seen in rounds]

    def reopen(self):
        self.objects[self.who], self.held[self.who] = self.fresh(), {}

    def wait(self):
        self.clock.now += self.draw(st.sampled_from([0.5, 2.0, 4.0]))

    def again(self):
        """The same told twice."""
        number = self.some("told")
        if number is not None and "rows" not in self.plain.trials[number]:
            trial = self.plain.trials[number]
            told = self.experiment.tell(number, trial["seen"])
            assert told.repeated
            assert told.late == trial["late"]
        number = self.some("failed")
        if number is not None:
            self.experiment.tell_failed(number, "rain")
        number = self.some("abandoned")
        if number is not None:
            self.experiment.abandon(number)

    def conflict(self):
        for state in ("told", "failed", "abandoned"):
            number = self.some(state)
            if number is None:
                continue
            trial = self.plain.trials[number]
            other = {self.graph.target: 1 - round((trial["seen"] or {}).get(self.graph.target, 0))}
            for call in (
                lambda number=number, other=other: self.experiment.tell(number, other),
                lambda number=number: self.experiment.tell_failed(number, "snow"),
                lambda number=number, state=state: state == "abandoned" or self.experiment.abandon(number),
            ):
                try:
                    done = call()
                except ConflictError:
                    done = True
                assert done is True

    @property
    def in_order(self):
        """Whether the plain log, which tells round by round, knows as much of their order as the experiment does."""
        together = any("rows" in trial for trial in self.plain.trials)
        return not (together and hasattr(self.plain.learner().engine.state, "told"))

    # -- help --------------------------------------------------------------------------------------------------------

    def some(self, state):
        numbers = [number for number, trial in enumerate(self.plain.trials) if trial["state"] == state]
        return self.draw(st.sampled_from(numbers)) if numbers else None

    def seen(self, do):
        value = st.one_of(st.integers(0, 1), st.floats(0, 1)) if self.continuous else st.integers(0, 1)
        absent = self.draw(st.sets(st.sampled_from(self.graph.nodes), max_size=1))
        free = [name for name in self.graph.nodes if name not in do and name not in absent]
        return {name: self.draw(value) if self.can_happen(name) else 0 for name in free}

    def can_happen(self, name):
        """Whether a variable may be other than 0 where nobody sets it: it has a cause, or a bias."""
        return bool(self.graph.parents(name)) or name in self.graph.bias

    def check(self):
        stored, plain = list(self.experiment.log.stored_trials()), self.plain
        assert [t.number for t in stored] == list(range(len(plain.trials)))
        decode = self.experiment.columns.decode
        for kept, trial in zip(stored, plain.trials, strict=True):
            assert (kept.state, kept.issued, kept.late) == (trial["state"], trial["issued"], trial["late"])
            assert decode(kept.do) == trial["do"]
            if kept.counts is None:
                assert (None if kept.observation is None else decode(kept.observation)) == trial["seen"]
            assert kept.rounds == len(trial.get("rows", [0]))
            if kept.source == "asked":
                assert kept.optimistic == trial["optimistic"]
                assert kept.lease_expires == trial["expires"]
        assert [t.number for t in sorted(stored, key=position) if t.position is not None] == plain.order

    def check_knowledge(self):
        told = flat(self.plain.learner().engine.state)
        for experiment in (*self.objects, self.fresh()):
            assert knowledge(experiment) == told


def position(trial):
    return math.inf if trial.position is None else trial.position


@relaxed(max_examples=50)
@given(st.data(), st.sampled_from(POLICIES))
def test_every_ask_follows_from_the_log(data, policy):
    follow(data, policy)


@relaxed(max_examples=15)
@given(st.data())
def test_every_ask_of_the_usual_policy_follows_from_the_log(data):
    follow(data, dob.CausalUCB())


def follow(data, policy):
    session = quietly(Session, data, policy)
    for operation in data.draw(st.lists(st.sampled_from(OPERATIONS), min_size=4, max_size=25)):
        session.run("load" if operation == "import" else operation)
    session.check_knowledge()
    session.who, session.experiment = 0, session.fresh()
    session.ask()
    session.check()
    session.check_knowledge()
