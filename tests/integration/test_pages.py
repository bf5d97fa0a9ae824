"""The pages: what they say, today's round, new experiments, and who may see them."""

import re

import pytest

from dobandit import CausalGraph, create_experiment, open_experiment
from dobandit.experiment.storage import MemoryStorage
from dobandit.service.pages import words
from dobandit.service.pages.demo import GRAPH, NAME, Shop, begin
from dobandit.service.pages.graphs import edges_between
from pages import FUNNEL, Visit, harmless

CONFOUNDED = (
    "target: buy\nemail -> visit\nvisit -> buy\nmood -> visit\nmood -> buy\nlatent: mood\ncontrollable: email\n"
)

# -- what pages say ---------------------------------------------------------------------------------------------------


def test_the_list_says_what_to_set_and_how_far_each_is(shop):
    page = harmless(shop.get("/").text)
    told = shop.experiment.recommend()
    assert NAME in page.text
    assert words.sets(told.do) in page.text
    assert f"{told.value:.2f}" in page.text
    assert "told 40 pending 1" in page.text
    assert ", 95%)" in page.text


def test_one_experiment_says_what_the_model_the_data_and_doing_nothing_say(shop):
    page = harmless(shop.get("/experiments/1").text)
    told, seen = shop.experiment.recommend(), shop.experiment.best_observed()
    for value in (told.value, told.nothing.value, seen.mean):
        assert words.digits(value) in page.text
    assert told.interval_words in page.text
    for warning in told.warnings:
        assert warning in page.text
    for row in shop.experiment.estimates():
        assert f"({words.digits(row.low, 2)} to {words.digits(row.high, 2)}" in page.text


def test_every_link_within_a_page_leads_somewhere(shop):
    page = harmless(shop.get("/experiments/1").text)
    anchors = {link[1:] for link in page.links if link.startswith("#")}
    assert any(anchor.startswith("effect-") for anchor in anchors)
    hidden = {"variable-" + str(GRAPH.index(name)) for name in GRAPH.latent}
    hidden |= {f"effect-{GRAPH.index(a)}-{GRAPH.index(b)}" for a, b in GRAPH.edges if a in GRAPH.latent}
    assert anchors - set(page.ids) <= hidden  # of what nobody sees there are no numbers
    for link in {link for link in page.links if link.startswith("/") and "logout" not in link and "today" not in link}:
        assert shop.request("GET", link).status_code in (200, 303), link


def test_the_slider_shows_what_was_known_then(shop):
    then = create_experiment(NAME, GRAPH, budget=2, storage=MemoryStorage(), seed=0, control=0.05)
    Shop(then, 0.0).play(17)  # the same rounds, and nothing after them
    part = harmless(shop.get("/experiments/1/graph", round=17).text)
    whole = harmless(shop.get("/experiments/1", round=17).text)
    told = then.recommend()
    for page in (part, whole):
        assert (
            f"After 17 closed trials: set {words.sets(told.do)}; purchase estimated at {told.value:.2f} (" in page.text
        )
    shown = shop.get("/experiments/1/graph", round=17).text
    for row in then.estimates():
        if row.cause is not None:
            arrow = f"{row.cause} → {row.effect}: {row.value:.2f} ({row.low:.2f} to {row.high:.2f})"
            assert arrow.replace(">", "&gt;") in shown
    assert "nothing was known" in shop.get("/experiments/1/graph", round=0).text
    assert "After 40 closed" in shop.get("/experiments/1/graph", round=10**9).text


def test_a_trial_shows_why_it_was_chosen(shop):
    number = next(row["trial"] for row in shop.experiment.trials()[::-1] if row["do"] and row["state"] == "told")
    told = shop.experiment.explain(number)
    text = shop.get(f"/experiments/1/trials/{number}").text
    page = harmless(text)
    assert told.why in page.text
    assert words.digits(told.predicted) in page.text
    assert words.sets(told.runner_up.do) in page.text
    fall = re.findall(r'class="label(?: strong)?">([+−]?[0-9.]+)</text>', text)
    assert fall[: len(fall) // 2] == fall[len(fall) // 2 :]  # wide and narrow show the same
    steps = [float(amount.replace("−", "-")) for amount in fall[: len(fall) // 2] if amount[0] in "+−"]
    assert sum(steps) == pytest.approx(told.optimistic, abs=0.0006 * len(steps))
    lit = set(re.findall(r'aria-label="(\w+) → (\w+)[^"]*"><g class="arrow(?: harm)? lit"', text))
    assert lit
    assert lit <= edges_between(GRAPH, told.do)


def test_the_page_of_a_trial_shows_the_weights_of_its_time_whoever_comes_first():
    visit = Visit()
    experiment = begin(visit.storage)
    Shop(experiment, 0.0).play(12)
    then = create_experiment("then", GRAPH, budget=2, storage=MemoryStorage(), seed=0, control=0.05)
    Shop(then, 0.0).play(9)
    text = visit.get("/experiments/1/trials/9").text  # before anybody has looked at the experiment
    for row in then.estimates():
        if row.cause is not None:
            assert f"{row.cause} → {row.effect}: {row.value:.2f} ({row.low:.2f} to {row.high:.2f})" in text


def test_lit_edges_are_those_on_paths_from_what_was_set():
    assert edges_between(GRAPH, ["coupon"]) == {("coupon", "basket"), ("coupon", "purchase"), ("basket", "purchase")}
    chain = CausalGraph([("a", "b"), ("b", "c"), ("d", "b")], target="c")
    assert edges_between(chain, ["a", "b"]) == {("b", "c")}  # what comes before a variable that is set does nothing
    assert edges_between(chain, []) == set()


def test_the_log_is_paged(shop):
    for after, numbers in ((-1, range(41)), (29, range(30, 41))):
        page = harmless(shop.get("/experiments/1/trials", after=after).text)
        shown = [int(link.rsplit("/", 1)[1]) for link in page.links if re.search(r"trials/\d+$", link)]
        assert shown == list(numbers)
    assert shop.get("/experiments/1/trials", status=303, position=3).headers["location"].endswith("/trials/3")


def test_what_is_not_there_is_said(shop):
    for path in ("/experiments/99", "/experiments/1/trials/99", "/experiments/99/today", "/experiments/99/snapshot"):
        assert "there is no" in shop.get(path, status=404).text.lower() or "has no trial" in shop.get(path, 404).text


def test_the_sentence_on_top_is_as_sure_as_the_rounds(shop):
    told = shop.experiment.recommend()._replace(verdict="fits", probability_best=0.99, gap=0.5)
    sure = words.headline(told._replace(uplift=None), "", "buy", 40, None, 0.01)
    assert sure.tone == "go"
    assert "almost certainly the best" in sure.sure
    assert words.headline(told._replace(probability_best=0.4), "", "buy", 40, None, 0.01).tone == "wait"
    doubt = words.headline(told._replace(verdict="contradicted"), "", "buy", 40, None, 0.01)
    assert doubt.tone == "doubt"
    assert "contradict" in doubt.sure
    stop = words.headline(told, "", "buy", 40, 0.5, 0.01).sure
    assert "You may stop" in stop
    assert "99%" in stop
    assert "may stop" not in words.headline(told._replace(verdict="contradicted"), "", "buy", 40, 0.5, 0.01).sure
    assert words.headline(told, "", "buy", 0, None, 0.01).tone == "wait"
    assert words.headline(None, "no model", "buy", 4, None, 0.01) == ("No set can be recommended.", "no model", "doubt")


# -- today's round ----------------------------------------------------------------------------------------------------


def test_a_round_is_asked_checked_and_told_once():
    visit = Visit()
    experiment = begin(visit.storage)
    assert "Ask what to set" in visit.get("/experiments/1/today").text
    asked = visit.post("/experiments/1/today/ask").headers["location"]
    assert asked == "/experiments/1/today?trial=0"
    page = visit.get(asked).text
    do = experiment.trial(0)["do"]
    seen = {name: 0 for name in experiment.columns.names if name not in do}
    fields = dict(re.findall(r"<legend>(\w+).*?name=\"(v\d+)\"", page, re.S))
    assert set(fields) == set(seen)
    form = {fields[name]: "0" for name in seen} | {fields["wishlist"]: "?", "issued": "1"}
    check = visit.post("/experiments/1/today/0", status=200, **form).text
    assert "there is no undo" in check
    assert "wishlist not seen" in harmless(check).text
    assert experiment.trial(0)["state"] == "pending"
    done = visit.post("/experiments/1/today/0", **form, step="tell").headers["location"]
    assert "Trial 0 is told. Not seen: wishlist." in visit.get(done).text
    told = experiment.trial(0)
    assert told["observation"] == {**{name: 0 for name in seen if name != "wishlist"}, **do}
    again = visit.post("/experiments/1/today/0", **form, step="tell").headers["location"]
    assert "nothing was changed" in visit.get(again).text
    refused = visit.post("/experiments/1/today/0", status=422, **(form | {fields["visit"]: "1"}), step="tell").text
    assert "a trial is closed once" in refused
    audit = [(line.who, line.what, line.detail) for line in visit.storage.audit()]
    assert audit == [("login link", "ask", "trial 0"), ("login link", "tell", "trial 0")]


def test_a_round_that_fails_or_is_abandoned():
    visit = Visit()
    experiment = begin(visit.storage)
    for _ in range(3):
        experiment.ask()
    assert "Under way" in visit.get("/experiments/1/today").text  # three to choose from
    visit.post("/experiments/1/today/0/fail", reason="the shop was closed")
    visit.post("/experiments/1/today/1/abandon")
    assert [row["state"] for row in experiment.trials()] == ["failed", "abandoned", "pending"]
    assert experiment.trial(0)["reason"] == "the shop was closed"
    assert "nothing was seen" in visit.post("/experiments/1/today/2", status=422).text
    assert "is failed already" in visit.get("/experiments/1/today", trial=0).text


def test_trials_of_many_rounds_and_contexts_and_numbers():
    visit = Visit()
    graph = CausalGraph([("mail", "buy"), ("mobile", "buy")], target="buy", context=["mobile"])
    crowd = create_experiment("crowd", graph, budget=1, storage=visit.storage, seed=0)
    asked = visit.post("/experiments/1/today/ask", c0="1").headers["location"]
    assert "mobile = 1" in visit.get(asked).text
    assert crowd.trial(0)["context"] == {"mobile": 1}
    visit.post("/experiments/1/today/0/abandon")
    crowd.ask(size=10, context={"mobile": 0})
    rows = "mobile,mail,buy,count\n0,{0},1,4\n0,{0},0,6\n".format(crowd.trial(1)["do"].get("mail", 0))
    assert "count" in visit.get("/experiments/1/today", trial=1).text
    assert "Is this right?" in visit.post("/experiments/1/today/1", status=200, rows=rows).text
    visit.post("/experiments/1/today/1", rows=rows, step="tell", issued="1")
    assert crowd.trial(1)["rounds"] == 10
    assert visit.get("/experiments/1", c0="1").status_code == 200
    smooth = create_experiment("smooth", GRAPH, budget=1, storage=visit.storage, seed=0, continuous=True, policy="ucb")
    trial = smooth.ask()
    field = f"v{smooth.columns.names.index('purchase')}"
    assert "is a number" in visit.post(f"/experiments/2/today/{trial.number}", status=422, **{field: "much"}).text
    visit.post(f"/experiments/2/today/{trial.number}", **{field: "0,25"}, step="tell")
    assert smooth.trial(trial.number)["observation"]["purchase"] == 0.25


# -- a new experiment -------------------------------------------------------------------------------------------------


def test_a_graph_is_drawn_and_its_fault_located():
    visit = Visit()
    assert "4 variables, 4 arrows" in harmless(visit.post("/new/preview", status=200, text=FUNNEL).text).text
    wrong = visit.post("/new/preview", status=200, text="target: buy\nemail -> visit\nvisit -> -> buy\n").text
    assert "line 3, column 10" in wrong
    assert "visit -&gt; -&gt; buy" in wrong
    assert "         ^" in wrong
    for stale in ({}, {"target": "buy"}):  # ticked for a text that was there before
        assert "names no target" in visit.post("/new/preview", status=200, text="a -> b\na -> c\n", **stale).text
    dot = visit.post("/new/preview", status=200, text="digraph { a -> b; b -> c }", target="c").text
    assert "3 variables, 2 arrows" in dot


def test_parts_are_ticked_and_the_experiment_begins():
    visit = Visit()
    names = ["coupon", "email", "visit", "buy"]
    form = {"text": FUNNEL, "shown": names, "settable": ["coupon"], "context": ["email"], "target": "buy"}
    form |= {"name": "a / b", "budget": "1", "step": "create", "stop_within": "0.05", "policy": "causal-ucb"}
    number = visit.post("/new", **form).headers["location"].rsplit("/", 1)[1]
    made = open_experiment("a / b", visit.storage)
    assert (made.graph.controllable, made.graph.context) == (("coupon",), ("email",))
    assert made.definition.stop_within == 0.05
    assert harmless(visit.get(f"/experiments/{number}").text)
    taken = visit.post("/new", status=422, **form).text
    assert "a / b" in taken
    for field, bad in (("budget", "many"), ("control", "x"), ("name", ""), ("text", "a ->")):
        assert 'role="alert"' in visit.post("/new", status=422, **(form | {field: bad})).text
    assert [line.what for line in visit.storage.audit()] == ["create"]


def test_a_model_file_says_its_parts_itself():
    visit = Visit()
    model = '{"target": "y", "nodes": {"a": {"bias": 0.3}, "y": {"bias": 0.1, "parents": {"a": 0.5}}}}'
    text = visit.post("/new/preview", status=200, text=model).text
    assert "A model file says who plays which part" in text
    visit.post("/new", text=model, name="m", budget="1", step="create")
    assert open_experiment("m", visit.storage).graph.target == "y"
    assert "$" in visit.post("/new/preview", status=200, text=model.replace("0.5", '"half"')).text


@pytest.mark.parametrize(("way", "policy", "hidden"), [("hide", "causal-ucb", ("visit",)), ("ucb", "ucb", ())])
def test_a_hidden_cause_that_cannot_be_removed_is_drawn_with_both_paths_and_a_way_on(way, policy, hidden):
    visit = Visit()
    text = visit.post("/new/preview", status=200, text=CONFOUNDED).text
    page = harmless(text)
    assert "A hidden cause that cannot be removed" in page.text
    assert text.count('class="arrow lit"') == 2 * 2  # mood -> visit and mood -> buy, wide and narrow
    refused = visit.post("/new", status=422, text=CONFOUNDED, name="x", budget="1", step="create").text
    assert 'role="alert"' in refused
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


# -- who, and what is not done ----------------------------------------------------------------------------------------


def test_readers_see_no_buttons_that_they_may_not_press(shop, monkeypatch):
    from dobandit.service.pages import experiment as module

    reader = shop.visitor._replace(scope="read", csrf="")
    seen = {}

    def page(request, name, status=200, **context):
        seen["text"] = module_page(request, name, status, **(context | {"visitor": reader})).body.decode()
        return module_page(request, name, status, **context)

    module_page = module.page
    monkeypatch.setattr(module, "page", page)
    shop.get("/experiments/1")
    assert "/today" not in seen["text"]
    assert "/new" not in seen["text"]


def test_a_page_of_a_long_log_reads_only_what_is_new(monkeypatch):
    visit = Visit()
    experiment = begin(visit.storage)
    Shop(experiment, 0.0).play(3)
    seen = {"done": dict.fromkeys(experiment.columns.names, 0)}
    experiment.import_history([({}, seen["done"])] * 500)
    visit.get("/experiments/1")
    read = []
    storage = type(visit.storage)
    for name in ("closed_since", "rows"):
        original = getattr(storage, name)

        def counted(self, *given, original=original, **more):
            found = list(original(self, *given, **more))
            read.append(len(found))
            return iter(found) if original.__name__ == "rows" else found

        monkeypatch.setattr(storage, name, counted)
    for path in ("/experiments/1", "/", "/experiments/1/graph?round=503"):
        assert visit.request("GET", path).status_code == 200
    assert sum(read) <= 20  # the newest trials of the table, and no more
