"""The settings of an experiment: each word of `create_experiment` is at every door, under its own name."""

import inspect

import click
import pytest

import dobandit as dob
from dobandit.cli.experiments import experiment_group
from dobandit.experiment.definition import SETTING_WORDS
from dobandit.oracle.rules import RULE_WORDS
from dobandit.service.api.experiment_routes import Create
from dobandit.service.api.graph_routes import GraphWords

PLACES = {"name", "graph", "policy", "budget", "storage", "if_exists", "history", "clock", "rules"}
# What an option is called where it is not the word with hyphens.
OPTIONS = {"levers": "--lever", "costs": "--cost", "links": "--link", "smaller": "--smaller"}


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
