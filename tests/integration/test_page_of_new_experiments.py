"""The page on which an experiment begins: a text, its parts, rules, and what is wrong with them."""

import re

import pytest

from dobandit import Rules, open_experiment
from helpers.pages import FUNNEL, Visit, harmless

CONFOUNDED = (
    "target: buy\nemail -> visit\nvisit -> buy\nmood -> visit\nmood -> buy\nlatent: mood\ncontrollable: email\n"
)


def test_a_graph_is_drawn_and_its_fault_located():
    visit = Visit()
    assert "4 variables, 4 arrows" in harmless(visit.post("/new/preview", status=200, text=FUNNEL).text).text
    wrong = visit.post("/new/preview", status=200, text="target: buy\nemail -> visit\nvisit -> -> buy\n").text
    assert "line 3, column 10" in wrong
    assert "visit -&gt; -&gt; buy" in wrong
    assert "         ^" in wrong
    for stale in ({}, {"part:buy": "target", "was:buy": "controllable"}):  # chosen for a text that was there before
        assert "names no target" in visit.post("/new/preview", status=200, text="a -> b\na -> c\n", **stale).text
    dot = visit.post("/new/preview", status=200, text="digraph { a -> b; b -> c }", **{"part:c": "target"}).text
    assert "3 variables, 2 arrows" in dot


BEGIN = {"text": FUNNEL, "name": "a / b", "budget": "1", "step": "create"}


def chosen(**parts):
    """The fields of a table that was drawn from FUNNEL, in which these parts were chosen."""
    drawn = {"coupon": "controllable", "email": "controllable", "visit": "controllable", "buy": "target"}
    fields = {"drawn_target": "buy"} | {f"was:{name}": part for name, part in drawn.items()}
    return fields | {f"part:{name}": part for name, part in (drawn | parts).items()}


def test_parts_are_chosen_and_the_experiment_begins():
    visit = Visit()
    form = BEGIN | chosen(email="context", visit="seen") | {"stop_within": "0.05", "policy": "causal-ucb"}
    number = visit.post("/new", **form).headers["location"].rsplit("/", 1)[1]
    made = open_experiment("a / b", visit.storage)
    assert (made.graph.controllable, made.graph.context) == (("coupon",), ("email",))
    assert made.definition.stop_within == 0.05
    assert harmless(visit.get(f"/experiments/{number}").text)
    assert [line.what for line in visit.storage.audit()] == ["create"]


def test_every_rule_and_link_can_be_given():
    visit = Visit()
    rules = {
        "budget": "",
        "total_cost": "3,5",
        "cost:coupon": "2",
        "levers:coupon": "0, 1",
        "exclusive": "email, visit",
    }
    more = {"link:visit": "logistic", "smaller": "no", "effects": "any", "control": "0.1"}
    visit.post("/new", **(BEGIN | chosen(coupon="require") | rules | more))
    made = open_experiment("a / b", visit.storage).definition
    expected = Rules(
        costs={"coupon": 2.0}, total_cost=3.5, levers={"coupon": (0, 1)}, require=["coupon"],
        exclusive=[["email", "visit"]], smaller=False,
    )  # fmt: skip
    assert made.problem.rules == expected
    links = {name: link["name"] if isinstance(link, dict) else link for name, link in made.document["links"].items()}
    assert links == {"coupon": "auto", "email": "auto", "visit": "logistic", "buy": "auto"}  # usual: causal-ucb's own
    assert made.document["effects"] == "any"
    visit.post("/new", **(BEGIN | {"name": "n", "values": "continuous", "policy": "ucb"} | chosen(visit="forbid")))
    other = open_experiment("n", visit.storage).definition
    assert other.problem.rules == Rules(1, forbid=["visit"])
    assert other.problem.continuous
    model = '{"target": "y", "nodes": {"a": {}, "b": {}, "y": {"bias": 0.1, "parents": {"a": 0.5, "b": 0.2}}}}'
    visit.post("/new", text=model, name="m", budget="2", step="create", **{"part:a": "always_set", "levers:b": "0 1"})
    assert open_experiment("m", visit.storage).definition.problem.rules == Rules(
        2, always_set=["a"], levers={"b": (0, 1)}
    )


@pytest.mark.parametrize(
    ("field", "bad", "said"),
    [
        ("budget", "many", "is a whole number"),
        ("budget", "7", "from 0 to 3"),
        ("budget", "", "needs a budget or a total cost"),
        ("total_cost", "-1", "the total cost is a number, 0 or more, but got -1"),
        ("total_cost", "much", "a number, such as 0.5, but got"),
        ("control", "1", "to below 1"),
        ("stop_within", "0", "above 0"),
        ("horizon", "0", "whole number from 1"),
        ("name", "  ", "1 to 200 characters"),
        ("exclusive", "email, visit\nemail", "line 2: a group is two or more"),
        ("exclusive", "email, letter", "'letter' is none of"),
        ("levers:coupon", "0, two", "numbers from 0 to 1"),
        ("levers:coupon", "3", "from 0 to 1"),
        ("cost:coupon", "-2", "a cost is a number, 0 or more, but that of coupon is -2"),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_nothing_typed_is_lost(field, bad, said):
    visit = Visit()
    form = BEGIN | chosen() | {"levers:email": "0, 1", "horizon": "50", "link:visit": "probit"} | {field: bad}
    text = visit.post("/new", status=422, **form).text
    page = harmless(text)
    wrong = dict(re.findall(r'<small class="wrong" id="wrong-([^"]+)">(.*?)</small>', text))
    assert list(wrong) == [field]
    assert said in wrong[field].replace("&#39;", "'")
    assert f'aria-describedby="wrong-{field}"' in text
    assert "beside 1 field" in page.text
    for name in {"levers:email", "horizon", "budget", field} - {"exclusive"}:
        assert f'name="{name}" value="{form[name].strip()}"' in text
    assert "<option selected>probit</option>" in text
    assert not list(visit.storage.experiments())


def test_costs_ask_for_a_total_cost_and_a_name_belongs_to_one():
    visit = Visit()
    text = visit.post("/new", status=422, **(BEGIN | chosen() | {"cost:email": "1.5"})).text
    assert re.search(r'id="wrong-total_cost">costs need a total cost', text)
    visit.post("/new", **(BEGIN | chosen()))
    assert re.search(
        r'id="wrong-name">A name belongs to one', visit.post("/new", status=422, **(BEGIN | chosen())).text
    )


def test_a_graph_that_is_wrong_is_said_once():
    visit = Visit()
    for text in ("a ->", "target: y\nx -> y\ny -> x\n"):
        said = visit.post("/new", status=422, **(BEGIN | {"text": text})).text
        fault = re.search(r'aria-label="What is wrong with the text">\s*<p class="alert" role="alert">(.*?)</p>', said)[
            1
        ]
        assert said.count(fault) == 1


def test_the_text_has_the_last_word_where_it_has_changed_and_the_page_where_it_has_not():
    visit = Visit()

    def parts(text, **fields):
        shown = visit.post("/new/preview", status=200, text=text, **fields).text
        found = re.findall(r'name="part:(\w+)".*?<option value="(\w+)" selected>', shown)
        return dict(found), re.search(r'name="drawn_target" value="(\w*)"', shown)[1]

    drawn = {name.removeprefix("part:"): part for name, part in chosen().items() if name.startswith("part:")}
    assert parts(FUNNEL) == (drawn, "buy")
    assert parts(FUNNEL, **chosen(email="latent"))[0]["email"] == "latent"
    typed = parts(FUNNEL + "latent: email\n", **chosen(visit="seen"))[0]  # typed after the table was drawn
    assert (typed["email"], typed["visit"]) == ("latent", "seen")
    moved, target = parts(FUNNEL, **chosen(visit="target"))  # chosen in one row: the other lets go of it
    assert (target, moved["visit"], moved["buy"]) == ("visit", "target", "controllable")
    two = visit.post("/new", status=422, **(BEGIN | chosen(visit="target", email="target"))).text
    assert "one variable is the target" in two
    assert 'name="cost:email"' in two  # the table is still there
    none = visit.post("/new", status=422, **(BEGIN | chosen(buy="seen"))).text
    assert "a target, but none is chosen" in none


def test_what_was_typed_for_a_variable_comes_back_with_its_name():
    visit = Visit()
    away = visit.post("/new/preview", status=200, text="target: buy\nvisi", **chosen(), **{"cost:visit": "7"}).text
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', away))
    assert fields["cost:visit"] == "7"
    assert "cost:email" not in fields  # nothing was said of it
    assert 'name="cost:visit" value="7"' in visit.post("/new/preview", status=200, text=FUNNEL, **fields).text


def test_a_model_file_says_its_parts_itself():
    visit = Visit()
    model = '{"target": "y", "nodes": {"a": {"bias": 0.3}, "y": {"bias": 0.1, "parents": {"a": 0.5}}}}'
    text = visit.post("/new/preview", status=200, text=model).text
    assert "A model file says who plays which part" in text
    visit.post("/new", text=model, name="m", budget="1", step="create")
    assert open_experiment("m", visit.storage).graph.target == "y"
    assert "$" in visit.post("/new/preview", status=200, text=model.replace("0.5", '"half"')).text


@pytest.mark.parametrize(
    ("way", "policy", "hidden"), [("", "causal-ucb", ()), ("hide", "causal-ucb", ("visit",)), ("ucb", "ucb", ())]
)
def test_a_hidden_cause_that_is_shared_is_drawn_with_both_paths_and_what_can_be_done(way, policy, hidden):
    visit = Visit()
    text = visit.post("/new/preview", status=200, text=CONFOUNDED).text
    page = harmless(text)
    assert "Variables that share a hidden cause" in page.text
    assert text.count('class="arrow lit"') == 2 * 2  # mood -> visit and mood -> buy, wide and narrow
    assert "answers to 'email'" in page.text
    visit.post("/new", text=CONFOUNDED, name="x", budget="1", step="create", way=way)
    made = open_experiment("x", visit.storage).definition
    assert made.policy_text.startswith(policy)
    assert tuple(made.problem.hidden) == hidden


def test_a_hidden_cause_of_what_can_be_set_is_cut_by_setting_it_always():
    visit = Visit()
    text = CONFOUNDED.replace("controllable: email", "controllable: email, visit")
    assert "Set visit in every round" in visit.post("/new/preview", status=200, text=text).text
    visit.post("/new", text=text, name="x", budget="2", step="create", way="set:visit")
    assert open_experiment("x", visit.storage).definition.problem.rules.always_set == ("visit",)
