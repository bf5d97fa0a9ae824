"""PolicySuite: whether a policy keeps the contract of `Policy` and `Engine`, on small problems of every kind.

    from dobandit.testing.policies import PolicySuite
    from my_package import MyPolicy

    class TestMyPolicy(PolicySuite):
        policies = [MyPolicy(), MyPolicy(setting=2.0)]

pytest collects the subclass and runs every test over every policy and problem. A problem that a policy refuses with one
of dobandit's errors is skipped, with what the policy said; one at least must be taken.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import SkipTest

import numpy as np

from dobandit.errors import DobanditError, DobanditWarning, InterventionError
from dobandit.model.bglm import WeightedModel
from dobandit.policy.base import Policy
from dobandit.policy.engine import NOTHING, Action, Array, Choice, Engine, Pending, Rounds, Situation
from dobandit.policy.problem import Problem
from dobandit.policy.questions import Believes
from dobandit.policy.questions import best as best_of
from dobandit.policy.registry import policy_from_document, policy_from_spec, policy_to_document, policy_to_spec
from dobandit.policy.unordered import learning_order, one_by_one
from dobandit.policy.world import World
from dobandit.simulation.simulate import run_study
from dobandit.simulation.study import Study, study_of
from dobandit.testing.policy_checks import (
    SAME,
    PlainExecutor,
    check,
    check_allowed,
    check_estimate,
    check_same_choice,
    close,
    contents,
    fail,
)
from dobandit.testing.problems import CASES, Case

Maker = Callable[[WeightedModel], Policy]
_ROUNDS = 16  # played before most questions
_LOOKS = 6  # at what two engines know, with other random numbers and contexts each time


class PolicySuite:
    """The tests. A subclass whose name starts with `Test` says which policies they are for.

    policies  the policies; or functions that get a problem's model and give a policy, for one that must know it
    cases     the problems; default: all of `dobandit.testing.problems.CASES`
    """

    policies: Sequence[Policy | Maker] = ()
    cases: Sequence[Case] = CASES

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Run each test over every policy, and over every problem where it asks for one."""
        if "policy" in metafunc.fixturenames:
            metafunc.parametrize("policy", self.policies, ids=list(map(name_of, self.policies)))
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases, ids=[case.name for case in self.cases])

    # -- the policy itself -----------------------------------------------------------------------------------------

    def test_it_takes_some_problem(self, policy: Policy | Maker) -> None:
        said = []
        for case in self.cases:
            try:
                started(policy, case)
                return
            except SkipTest as refused:
                said.append(f"{case.name}: {refused}")
        fail("a policy takes some problem of the suite, but this one refuses them all:\n" + "\n".join(said))

    def test_it_is_a_value(self, policy: Policy | Maker) -> None:
        one, other = (made(policy, self.cases[0]) for _ in range(2))
        check(one == other and hash(one) == hash(other), f"equal policies are equal, with equal hashes: {one!r}.")
        check(bool(one.label.strip()), "a policy has a label for tables and figures, but this one's is empty.")

    def test_files_and_the_command_line_hold_it_by_name(self, policy: Policy | Maker) -> None:
        model = self.cases[0].model
        it = made(policy, self.cases[0])
        document = policy_to_document(it)
        again = policy_from_document(json.loads(json.dumps(document, allow_nan=False)), model)
        check(again == it, f"a policy read from its own JSON is the same, but {it!r} became {again!r}.")
        if all(isinstance(value, (int, float, str)) for value in it.settings().values()) or it.name == "fixed":
            spec = policy_to_spec(it)
            again = policy_from_spec(spec, model)
            check(again == it, f"a policy read from its own text {spec!r} is the same, but {it!r} became {again!r}.")

    # -- choosing --------------------------------------------------------------------------------------------------

    def test_questions_are_repeatable_and_change_nothing(self, policy: Policy | Maker, case: Case) -> None:
        engine, quiet = started(policy, case), started(policy, case)
        for t, (now, rounds) in enumerate(played(engine, case)):
            asked = [] if t % 2 else [now, now._replace(pending=some_pending(engine.choose(now), now))]
            for situation in asked:
                choice, best = engine.choose(situation), best_of(engine, situation)
                engine.compare(situation)
                engine.predict(choice.action, situation.context)
                check_same_choice(choice, engine.choose(situation), "asked twice")
                check_same_choice(best, best_of(engine, situation), "asked twice for the best")
            check_same_choice(engine.choose(now), quiet.choose(now), "after many questions, and without")
            check(engine.rounds == quiet.rounds, f"questions are no rounds, but {engine.rounds} were counted.")
            for each in (engine, quiet):
                each.update(rounds)

    def test_what_it_chooses_is_allowed(self, policy: Policy | Maker, case: Case) -> None:
        engine = started(policy, case)
        for t, (now, rounds) in enumerate(played(engine, case)):
            for available in (None, some_available(case.problem, now.draws, t)):
                here = now._replace(available=available)
                try:
                    choice = engine.choose(here)
                except InterventionError:
                    check(available is not None, "choose gives an action where everything can be set.")
                    continue  # one that plays a single action may not be able to
                check_allowed(choice.action, case.problem, available, "choose")
                check_allowed(best_of(engine, here).action, case.problem, available, "best")
                here = here._replace(pending=some_pending(choice, here))
                check_allowed(engine.choose(here).action, case.problem, available, "choose with pending actions")
            engine.update(rounds)

    def test_what_it_compares_explains_its_choice(self, policy: Policy | Maker, case: Case) -> None:
        engine = started(policy, case)
        for now, rounds in played(engine, case):
            choice, compared = engine.choose(now), list(engine.compare(now))
            if compared and not math.isnan(choice.value):
                index = dict(compared)
                if choice.action not in index:
                    fail(f"compare has what was chosen, but lacks {choice.action}: {compared}.")
                check(
                    close(index[choice.action], choice.value),
                    f"{choice.action} has the index {choice.value} for choose, but {index[choice.action]} in compare.",
                )
                most = max(index.values())
                check(
                    not choice.proved or close(choice.value, most) or choice.value > most,
                    f"the chosen action has the largest index, but {choice.value} is below {most}.",
                )
            for action, _ in compared:
                check_allowed(action, case.problem, None, "compare")
            engine.update(rounds)

    def test_predictions_lie_in_their_intervals(self, policy: Policy | Maker, case: Case) -> None:
        engine = started(policy, case)
        for now, rounds in played(engine, case):
            for action in {engine.choose(now).action, best_of(engine, now).action, case.problem.idle(), NOTHING}:
                check_estimate(engine.predict(action, now.context), action)
            engine.update(rounds)

    # -- learning --------------------------------------------------------------------------------------------------

    def test_a_batch_single_rounds_and_counts_teach_the_same(self, policy: Policy | Maker, case: Case) -> None:
        engine, rows = started(policy, case), []
        for _, rounds in played(engine, case):
            engine.update(rounds)
            rows.append(rounds)
        counts = 1 + np.arange(len(rows)) % 3
        batch = Rounds(
            np.concatenate([row.values for row in rows]), np.concatenate([row.was_set for row in rows]), counts
        )
        by_count, in_a_batch, as_one = (started(policy, case) for _ in range(3))
        spread = isinstance(engine, Believes) and engine.weighs_by_order
        order = learning_order(batch) if spread else np.arange(len(rows)).repeat(counts)
        by_count.update(batch)
        in_a_batch.update(one_by_one(batch, order))
        for i in order:
            as_one.update(rows[i])
        check_same_knowledge(as_one, in_a_batch, case, "rounds told one by one, and in a batch")
        check_same_knowledge(as_one, by_count, case, "rounds told one by one, and by their counts", intervals=False)

    def test_rounds_are_counted(self, policy: Policy | Maker, case: Case) -> None:
        engine = started(policy, case)
        check(engine.rounds == 0, f"an engine starts with 0 rounds, but says {engine.rounds}.")
        for count, (_, rounds) in enumerate(played(engine, case)):
            engine.update(rounds)
            check(engine.rounds == count + 1, f"after {count + 1} rounds the engine says {engine.rounds}.")
        engine.update(rounds._replace(counts=np.array([5])))
        check(engine.rounds == _ROUNDS + 5, f"a row that happened 5 times is 5 rounds, but it says {engine.rounds}.")
        engine.update(Rounds(rounds.values[:0], rounds.was_set[:0], rounds.counts[:0]))
        check(engine.rounds == _ROUNDS + 5, f"no rows are no rounds, but the engine now says {engine.rounds}.")

    def test_a_copy_learns_by_itself(self, policy: Policy | Maker, case: Case) -> None:
        engine, witness = started(policy, case), started(policy, case)
        for _, rounds in played(engine, case):
            engine.update(rounds)
            witness.update(rounds)
        twin = engine.copy()
        check_same_knowledge(engine, twin, case, "an engine, and its copy")
        before = contents(engine)
        for now, rounds in played(twin, case, seed=2):
            twin.predict(best_of(twin, now).action, now.context)
            twin.update(rounds)
        written = sum(array.tobytes() != then for array, then in before)
        check(not written, f"a copy wrote to {written} arrays of the engine, which another thread may be using.")
        check(twin.rounds == 2 * engine.rounds, f"a copy learned, and now the engine says {engine.rounds} rounds.")
        check_same_knowledge(engine, witness, case, "an engine whose copy learned, and one without a copy")

    def test_values_that_were_not_seen_do_not_break_it(self, policy: Policy | Maker, case: Case) -> None:
        engine, rng = started(policy, case), np.random.default_rng(3)
        for t, (now, rounds) in enumerate(played(engine, case)):
            unseen = (rng.random(rounds.values.shape) < (1.0 if t < 5 else 0.4)) & ~rounds.was_set
            unseen[:, 0] = False
            engine.update(rounds._replace(values=np.where(unseen, np.nan, rounds.values)))
            check_allowed(engine.choose(now).action, case.problem, None, "choose")
            best = best_of(engine, now).action
            check_estimate(engine.predict(best, now.context), best)
        check(engine.rounds == _ROUNDS, f"a round with values not seen is a round, but it says {engine.rounds}.")

    def test_rounds_that_nobody_asked_for_do_not_break_it(self, policy: Policy | Maker, case: Case) -> None:
        """Recorded and imported rounds may set any variables, to any value."""
        engine, world = started(policy, case), World(case.model, case.problem.graph)
        rng, graph = np.random.default_rng(4), case.problem.graph
        others = [graph.index(name) for name in graph.nodes if name not in (graph.target, *graph.context)]
        for now, _ in played(engine, case):
            ids = [v for v in others if rng.random() < 0.5]
            action = Action(tuple(ids), tuple(rng.integers(0, 2, len(ids)).astype(float).tolist()))
            engine.update(world.play(action, rng.random(len(case.model.graph))))
            check_allowed(engine.choose(now).action, case.problem, None, "choose")
            check_estimate(engine.predict(action, now.context), action)

    # -- simulation ------------------------------------------------------------------------------------------------

    def test_a_simulated_run_is_the_plain_loop(self, policy: Policy | Maker, case: Case) -> None:
        study = self._study(case, policy, replications=2)
        with unwarned():
            own, plain = run_study(study, workers=1), run_study(study, executor=PlainExecutor())
            plays = [result.plays(result.labels[0]) for result in (own, plain)]
        rule = "`run` plays as choose and update do on the same random numbers, but the {} differ."
        for what in ("regret", "reward"):
            one, other = (getattr(result, f"all_{what}") for result in (own, plain))
            check(np.allclose(one, other, rtol=0, atol=SAME), rule.format(f"curves of the {what}"))
        same = all(np.array_equal(count, plays[1][action]) for action, count in plays[0].items())
        check(same, rule.format("actions"))

    def test_results_do_not_depend_on_the_number_of_workers(self, policy: Policy | Maker, case: Case) -> None:
        study = self._study(case, policy, replications=3)
        with unwarned():
            one, three = (run_study(study, workers=workers) for workers in (1, 3))
        for what in ("regret", "reward", "plays"):
            same = np.array_equal(getattr(one, f"all_{what}"), getattr(three, f"all_{what}"))
            check(same, f"a replication is a function of the seed and its number, but the {what} depends on workers.")

    def _study(self, case: Case, policy: Policy | Maker, replications: int) -> Study:
        it = made(policy, case)
        study = study_of(case.model, [it], _ROUNDS, replications, case.rules, seed=5, record="every")
        engine_of(it, study.problem)  # the horizon of a study is its rounds: too few for some
        return study


# -- what the tests are made of ------------------------------------------------------------------------------------


@contextmanager
def unwarned() -> Iterator[None]:
    """Without dobandit's warnings: a policy may say that a problem does not suit it well, and take it all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DobanditWarning)
        yield


def name_of(policy: Policy | Maker) -> str:
    """What a policy is called in the names of tests."""
    return policy.label if isinstance(policy, Policy) else policy.__name__


def made(policy: Policy | Maker, case: Case) -> Policy:
    """The policy for a problem."""
    return policy if isinstance(policy, Policy) else policy(case.model)


def started(policy: Policy | Maker, case: Case) -> Engine:
    """The policy at work on the problem of a case; the test is skipped where it refuses."""
    return engine_of(made(policy, case), case.problem)


def engine_of(policy: Policy, problem: Problem) -> Engine:
    try:
        with unwarned():
            return policy.engine(problem)
    except DobanditError as error:
        raise SkipTest(str(error)) from None


def played(engine: Engine, case: Case, seed: int = 1) -> Iterator[tuple[Situation, Rounds]]:
    """Rounds of the world: what is known before acting, and what comes of the engine's choice; the caller lets the
    engine learn."""
    world = World(case.model, case.problem.graph)
    for now, draws in situations(engine, case, seed, _ROUNDS):
        yield now, world.play(engine.choose(now).action, draws)


def situations(engine: Engine, case: Case, seed: int, count: int) -> Iterator[tuple[Situation, Array]]:
    """What is known before acting, and the random numbers of the world."""
    rng, world = np.random.default_rng(seed), World(case.model, case.problem.graph)
    for _ in range(count):
        draws = rng.random(len(case.model.graph))
        yield Situation(rng.random(engine.draws), world.context(draws)), draws


def some_available(problem: Problem, draws: Array, t: int) -> tuple[int, ...]:
    """Some variables that can be set now: in turn the required ones alone, with another one, and with all but one."""
    graph, required = problem.graph, {problem.graph.index(name) for name in problem.rules.require}
    others = [graph.index(name) for name in graph.controllable if graph.index(name) not in required]
    pick = others[int(draws[0] * len(others))] if others else 0
    found = [required, required | {pick}, required | {v for v in others if v != pick}]
    return tuple(sorted(found[t % 3] - {0}))


def some_pending(choice: Choice, now: Situation) -> tuple[Pending, ...]:
    """The choice of this moment as under way, once and three times."""
    return Pending(choice.action, now.context), Pending(choice.action, now.context, 3)


def check_same_knowledge(one: Engine, other: Engine, case: Case, whose: str, intervals: bool = True) -> None:
    """Fail where two engines would choose or predict differently. Without intervals: these may rest on the order of
    rounds, which counts have lost, and so may choices that go by them."""
    check(one.rounds == other.rounds, f"{whose}, are {one.rounds} and {other.rounds} rounds.")
    for now, _ in situations(one, case, seed=6, count=_LOOKS):
        choices = one.choose(now), other.choose(now)
        if intervals or not (isinstance(one, Believes) and one.trusts_intervals):
            same = choices[0].action == choices[1].action and close(choices[0].value, choices[1].value)
            check(same, f"{whose}, lead to {choices[0]} and {choices[1]}.")
        estimates = [engine.predict(choices[0].action, now.context) for engine in (one, other)]
        same = all(map(close, *estimates)) if intervals else close(estimates[0].value, estimates[1].value)
        check(same, f"{whose}, predict {estimates[0]} and {estimates[1]} for {choices[0].action}.")
