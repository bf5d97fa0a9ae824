"""What the tests of `dobandit experiment` share."""

import json

import pytest

GRAPH = "target: buy\nemail -> visit\ncoupon -> visit\nvisit -> buy\ncoupon -> buy\n"
PAPER = ["--policy", "blm-lr:radius_scale=0.1"]


def json_of(done):
    return json.loads(done.out, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))


def refused(done):
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    return done.err
