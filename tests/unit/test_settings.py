"""The settings of an experiment: each word of `create_experiment` is at every door, under its own name."""

import inspect

import click
import pytest

import dobandit as dob
from dobandit.cli.experiments import experiment_group
from dobandit.client.service import Service
from dobandit.experiment.definition import SETTING_WORDS
from dobandit.oracle.rules import RULE_WORDS
from dobandit.service.api.experiment_routes import Create
from dobandit.service.api.graph_routes import GraphWords
from dobandit.service.pages import new_experiment_page
from helpers.pages import FUNNEL, Visit

PLACES = {"name", "graph", "policy", "budget", "storage", "if_exists", "history", "clock", "rules"}
# What an option is called where it is not the word with hyphens.
OPTIONS = {"levers": "--lever", "costs": "--cost", "links": "--link", "smaller": "--smaller"}
# Settings with a value of each, as a user gives it.
GIVEN = {
    "policy": "ucb", "horizon": 100, "seed": 3, "lease": 60.0, "links": "identity", "continuous": True,
    "effects": "any", "hide": ["visit"], "control": 0.1, "stop_within": 0.2, "history": [{"buy": 1}],
    "randomised": True, "if_exists": "open", "levers": {"email": [0.0, 1.0]}, "costs": {"email": 2.0},
    "total_cost": 3.0, "require": ["email"], "forbid": ["visit"], "exclusive": [["email", "coupon"]],
    "smaller": False, "always_set": ["email"], "available": ["email"],
}  # fmt: skip
# The page leaves these as they are: they are for programs, or data.
NOT_ON_THE_PAGE = {"seed", "lease", "available", "history", "randomised", "if_exists"}


def options():
    command = experiment_group.get_command(click.Context(experiment_group), "create")
    return {name for option in command.params for name in option.opts}


def properties():
    return Create.model_fields


def test_the_words_of_create_experiment_are_the_settings():
    assert set(inspect.signature(dob.create_experiment).parameters) - PLACES == {*SETTING_WORDS, "randomised"}


@pytest.mark.parametrize("word", ["policy", "history", "randomised", "if_exists", *SETTING_WORDS, *RULE_WORDS])
def test_each_word_is_an_option_a_property_and_explained(word):
    assert OPTIONS.get(word, f"--{word.replace('_', '-')}") in options()
    assert word in properties()
    assert word in dob.create_experiment.__doc__


def test_no_door_has_a_word_of_its_own():
    others = {"name", "budget", "policy", "history", "randomised", "if_exists"}
    assert set(properties()) == {*GraphWords.model_fields, *others, *SETTING_WORDS, *RULE_WORDS}


def test_there_is_a_value_of_each_setting():
    assert set(GIVEN) == {"policy", "history", "randomised", "if_exists", *SETTING_WORDS, *RULE_WORDS}


@pytest.mark.parametrize("word", GIVEN)
def test_the_client_sends_each_word_under_its_name(word):
    class Sent(Exception):  # noqa: N818 (no fault: what was sent)
        pass

    class Connection:
        def post(self, path, document, once):
            raise Sent(document)

    graph = dob.CausalGraph([("email", "visit"), ("coupon", "visit"), ("visit", "buy")], target="buy")
    with pytest.raises(Sent) as sent:
        Service(Connection()).create_experiment("spring", graph, 1, **{word: GIVEN[word]})
    document = sent.value.args[0]
    assert document[word] == GIVEN[word]
    assert {"name", "graph", "budget"} <= set(document)


def test_the_page_gives_each_word_but_those_for_programs(monkeypatch):
    given = {}
    monkeypatch.setattr(new_experiment_page, "create_experiment", lambda **words: given.update(words))
    visit = Visit()
    visit.post("/new", text=FUNNEL, name="spring", budget="1", step="create")
    assert set(given) - {"name", "graph", "budget", "storage", "clock"} == set(GIVEN) - NOT_ON_THE_PAGE
