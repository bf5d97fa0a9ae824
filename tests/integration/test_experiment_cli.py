"""`dobandit experiment` as a user meets it: experiments and their rounds."""

import json
import math
import shlex

import pytest

from dobandit.cli.experiments import manage
from dobandit.cli.options import seconds_of
from dobandit.documents.live import trial_document
from dobandit.policy.engine import Interval
from dobandit.rows.trial import Trial
from helpers.experiment_commands import PAPER, json_of, refused

# -- create, list, show, rename, delete --------------------------------------------------------------------------


def test_create_says_what_was_made_and_what_comes_next(run):
    text = run("experiment", "create", "a b", "graph.txt", "-k", 2, "--seed", 5, "--lease", "30m").out
    assert "experiment a b created in sqlite:///dobandit.db" in text
    assert "to set     at most 2 of coupon, email, visit\n" in text
    assert "sizes      sets of at most 2, nothing included: effects may do harm\n" in text
    assert "auto for buy, coupon, email, visit" in text
    assert "some cause may do harm" in text
    assert "causal-ucb" in text
    assert "30m" in text
    assert "next: dobandit experiment ask 'a b'" in text
    text = run("experiment", "create", "b", "graph.txt", "-k", 2, *PAPER).out
    assert "to set     at most 2 of coupon, email, visit\n" in text
    assert "sizes      sets of exactly 2: one more variable never lowers the target here\n" in text
    assert "no cause does harm" in text
    text = run("experiment", "create", "c", "graph.txt", "-k", 2, "--full-size").out
    assert "sets of exactly 2: smaller ones were ruled out" in text


def test_create_takes_levers_contexts_and_effects(run):
    options = ["-k", 1, "--lever", "coupon=0,1", "--context", "email", "--effects", "nonnegative"]
    document = json_of(run("experiment", "create", "s", "graph.txt", *options, "--json"))["definition"]
    assert document["rules"]["levers"] == {"coupon": [0.0, 1.0]}
    assert document["graph"]["context"] == ["email"]
    text = run("experiment", "show", "s").out
    assert "at most 1 of coupon (0 or 1), visit\n" in text
    assert "sets of at most 1, nothing included: variables can be set to other values than 1\n" in text
    assert "email, known before acting" in text
    assert "no cause does harm" in text


def test_create_takes_the_rules_the_policy_and_the_links(run):
    rules = ["--total-cost", 3, "--cost", "coupon=2", "--forbid", "visit", "--exclusive", "email,coupon"]
    made = run(
        *("experiment", "create", "s", "graph.txt", *rules, "--policy", "bglm-ofu:initial=5", "--horizon", 50),
        *("--link", "logistic", "--link", "visit=probit", "--json"),
    )
    document = json_of(made)["definition"]
    assert document["rules"]["total_cost"] == 3.0
    assert document["rules"]["costs"] == {"coupon": 2.0}
    assert document["rules"]["exclusive"] == [["email", "coupon"]]
    assert document["policy"] == {"name": "bglm-ofu", "initial": 5}
    assert (document["horizon"], document["links"]["visit"]["name"]) == (50, "probit")
    assert document["links"]["buy"]["name"] == "logistic"
    text = run("experiment", "show", "s").out
    assert "what costs at most 3 of coupon, email" in text
    assert "logistic for buy, coupon, email" in text


def test_a_link_for_one_variable_leaves_the_others_to_the_policy(run):
    created = ("experiment", "create", "s", "graph.txt", "--budget", 1, "--link", "visit=logistic", "--json")
    links = json_of(run(*created))["definition"]["links"]
    assert {name for name, link in links.items() if link == "auto"} == {"coupon", "email", "buy"}
    assert links["visit"]["name"] == "logistic"
    assert list(
        json_of(run(*created[:2], "p", *created[3:], "--policy", "bglm-ofu:initial=5"))["definition"]["links"]
    ) == ["visit"]


def test_create_takes_structure_and_links_of_a_model_but_no_weights(run, tmp_path):
    nodes = {"X": {"bias": 0.3}, "Y": {"link": "logistic", "parents": {"X": 0.123456}}}
    (tmp_path / "model.json").write_text(json.dumps({"target": "Y", "nodes": nodes}))
    made = run("experiment", "create", "m", "model.json", "-k", 1, "--json").out
    assert "logistic" in made
    assert "0.123456" not in made


def test_create_opens_what_exists_if_told_to(x):
    assert "spring" in refused(x("create", "spring", "graph.txt", "-k", 1, code=2))
    same = ["spring", "graph.txt", *PAPER, "--if-exists", "open"]
    assert "opened" in x("create", *same, "-k", 1).out
    made = json_of(x("create", *same, "-k", 1, "--seed", 0, "--json"))
    assert made["created"] is False
    assert "rules" in refused(x("create", *same, "-k", 2, code=2))


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400)])
def test_leases_have_units(text, seconds):
    assert seconds_of(text) == seconds


def test_list_and_show(x):
    x("ask", "spring")
    assert "spring" in x("list").out
    row = json_of(x("list", "--json"))[0]
    assert (row["name"], row["trials"], row["closed"], row["pending"]) == ("spring", 1, 0, 1)
    assert "1 pending" in x("show", "spring").out
    shown = json_of(x("show", "spring", "--json"))
    assert (shown["target"], shown["pending"], shown["mean_target"]) == ("buy", 1, None)
    assert shown["definition"]["rules"]["budget"] == 1
    assert shown["created_at"].endswith("Z")


def test_an_empty_storage_is_no_mistake_and_is_not_made(run, tmp_path):
    assert "no experiments" in run("experiment", "list").out
    assert json_of(run("experiment", "list", "--json")) == []
    assert not (tmp_path / "dobandit.db").exists()


def test_rename(x):
    assert x("rename", "spring", "summer").out == "experiment spring is now summer\n"
    assert json_of(x("rename", "summer", "fall", "--json")) == {"experiment": "fall", "was": "summer"}
    refused(x("rename", "spring", "winter", code=2))


def test_delete_asks_and_refuses_where_nobody_can_answer(x, monkeypatch):
    assert "--yes" in refused(x("delete", "spring", code=2))
    monkeypatch.setattr(manage, "at_a_terminal", lambda: True)
    declined = x("delete", "spring", code=1, stdin=b"n\n")
    assert declined.out == "nothing was deleted\n"
    assert "Delete experiment spring with its 0 trials" in declined.err
    assert json_of(x("list", "--json"))
    assert "deleted" in x("delete", "spring", stdin=b"y\n").out
    assert json_of(x("list", "--json")) == []
    refused(x("delete", "spring", "--yes", code=2))


def test_delete_with_yes(x):
    assert json_of(x("delete", "spring", "--yes", "--json")) == {"experiment": "spring", "deleted": True}


# -- rounds ------------------------------------------------------------------------------------------------------


def test_ask_prints_the_command_for_what_was_seen(x):
    text = x("ask", "spring").out
    assert text.startswith("trial 0: set ")
    assert "predicted E[buy]" in text
    command = text.splitlines()[-1].strip()
    assert command.startswith("dobandit experiment tell spring 0 ")
    assert "--storage" not in command
    told = x(*command.replace("=_", "=1").split()[2:])
    assert told.out == "trial 0 told\n"


def test_the_printed_command_can_be_typed_for_odd_names_and_storages(run, tmp_path):
    (tmp_path / "graph.json").write_text(json.dumps({"target": "Y", "edges": [["a=b c", "Y"]]}))
    where = ["--storage", "sqlite:///other place.db"]
    run("experiment", "create", *where, "-k", 0, "--", "-my 'exp", "graph.json")
    command = run("experiment", "ask", *where, "--", "-my 'exp").out.splitlines()[-1]
    words = shlex.split(command.replace("=_", "=1"))[1:]
    assert "a=b c=1" in words
    assert run(*words).out == "trial 0 told\n"


def test_ask_in_json(x):
    asked = json_of(x("ask", "spring", "--json"))
    keys = "trial do predicted interval why lease_expires issued context size control interval_words"
    assert list(asked) == keys.split()
    assert (asked["trial"], asked["issued"], asked["lease_expires"]) == (0, 1, None)
    low, high = asked["interval"]
    assert low <= high
    many = json_of(x("ask", "spring", "-n", 3, "--available", "email", "--lease", "2h", "--json"))
    assert [trial["trial"] for trial in many] == [1, 2, 3]
    assert all(trial["do"] == {"email": 1} for trial in many)
    assert all(trial["lease_expires"].endswith("Z") for trial in many)
    assert x("ask", "spring", "-n", 2).out.count("dobandit experiment tell spring") == 2


def test_a_prediction_that_is_not_there_is_null():
    document = trial_document(Trial(3, {"X": 1}, math.nan, Interval(0.0, math.inf), "why"), "words")
    assert (document["trial"], document["predicted"], document["interval"]) == (3, None, [0.0, None])


def test_many_variables_are_told_in_a_file(run, tmp_path):
    (tmp_path / "wide.txt").write_text("target: Y\n" + "".join(f"X{i} -> Y\n" for i in range(20)))
    run("experiment", "create", "wide", "wide.txt", "-k", 1)
    assert "--json-file seen.json wide 0" in run("experiment", "ask", "wide").out


def test_tell(x):
    x("ask", "spring", "-n", 4, "--available", "coupon")
    assert x("tell", "spring", 0, "email=1", "visit=1", "buy=0").out == "trial 0 told\n"
    assert x("tell", "spring", 0, "email=1", "visit=1", "buy=0").out == "trial 0 told (same as before)\n"
    for unclear in ("email=", "email=nan", "email=NaN"):
        assert "? for not seen" in refused(x("tell", "spring", 1, unclear, "buy=1", code=2))
    partial = x("tell", "spring", 1, "visit=?", "email=0", "buy=1").out
    assert partial == "trial 1 told (partial: visit was not told, so nothing was learned about visit and buy)\n"
    told = json_of(x("tell", "spring", 2, "--json-file", "-", "--json", stdin=b'{"visit": null, "buy": 1}'))
    assert told == {
        "trial": 2,
        "late": False,
        "partial": True,
        "repeated": False,
        "rounds": 1,
        "missing": ["email", "visit"],
        "untaught": ["email", "visit", "buy"],
    }
    conflict = refused(x("tell", "spring", 0, "email=1", "visit=1", "buy=1", code=2))
    assert "already told" in conflict


def test_tell_from_a_file(x, tmp_path):
    x("ask", "spring", "--available", "coupon")
    (tmp_path / "seen.json").write_text('{"email": 0, "visit": true, "buy": 1}')
    assert x("tell", "spring", 0, "--json-file", "seen.json").out == "trial 0 told\n"


def test_a_trial_of_many_rounds(x, tmp_path):
    asked = x("ask", "spring", "--size", 1000, "--available", "coupon").out
    assert "planned for" in asked
    assert asked.splitlines()[-1].endswith("--rows rows.csv spring 0")
    (tmp_path / "rows.csv").write_text("email,visit,buy,count\n0,0,0,880\n0,1,0,105\n0,1,1,15\n")
    assert x("tell", "spring", 0, "--rows", "rows.csv").out == "trial 0 told with 1,000 rounds\n"
    lines = "email,visit,buy\n" + "0,1,1\n" * 15 + "0,0,0\n" * 880 + "0,1,0\n" * 105
    assert "same as before" in x("tell", "spring", 0, "--rows", "-", stdin=lines.encode()).out
    rows = b'[{"visit": 1, "buy": 1, "email": 0, "count": 2}]'
    said = ("--do", "coupon=1", "--json-file", "-", "--randomised", "--json")
    assert json_of(x("record", "spring", *said, stdin=rows)) == {"trial": 1}
    shown = x("show", "spring").out
    assert "1,002 in the trials that were told" in shown
    assert json_of(x("show", "spring", "--json"))["rounds"] == 1002
    assert "1,000 rounds" in x("trials", "spring").out
    best = json_of(x("best-observed", "spring", "--json"))
    assert (best["do"], best["rounds"]) == ({"coupon": 1}, 1002)
    assert "rounds with this set  1,002" in x("best-observed", "spring").out
    x("ask", "spring", "--size", 10)
    totals = refused(x("tell", "spring", 2, "visit=120", "buy=15", code=2))
    assert "which effect went with which cause" in totals
    (tmp_path / "bad.csv").write_text("visit,buy\n1,0\n1,7\n")
    assert "line 3" in refused(x("tell", "spring", 2, "--rows", "bad.csv", code=2))
    refused(x("tell", "spring", 2, "--rows", "absent.csv", code=2))
    refused(x("tell", "spring", 2, "--rows", "rows.csv", "buy=1", code=2))
    refused(x("tell", "spring", 2, code=2))


def test_control_rounds(x):
    x("create", "held", "graph.txt", "-k", 1, "--control", 0.5, "--seed", 1, *PAPER)
    asked = json_of(x("ask", "held", "-n", 8, "--json"))
    assert {trial["control"] for trial in asked} == {True, False}
    for trial in asked:
        x("tell", "held", trial["trial"], "buy=1")
    shown = x("show", "held").out
    assert "nothing is set in 0.5 of the rounds" in shown
    assert "buy in control rounds" in shown
    assert "nothing about visit" in shown
    assert json_of(x("show", "held", "--json"))["control"]["value"] == 1.0
    assert "control" in x("trials", "held").out
    assert "control: nothing is set" in x("ask", "spring", "--control").out
    assert json_of(x("ask", "held", "--no-control", "--json"))["control"] is False
    refused(x("create", "more", "graph.txt", "-k", 1, "--control", 2, code=2))


def test_contexts(x):
    assert "this one has none" in refused(x("ask", "spring", "--context", "email=1", code=2))
    x("delete", "spring", "--yes")
    x("create", "spring", "graph.txt", "-k", 1, "--context", "email", *PAPER)
    assert "'email' is missing" in refused(x("ask", "spring", code=2))
    assert "NAME=VALUE" in refused(x("ask", "spring", "--context", "email", code=2))
    asked = x("ask", "spring", "--context", "email=1", "--available", "coupon").out
    assert "context" in asked
    assert "email=_" not in asked
    x("tell", "spring", 0, "visit=1", "buy=1")
    assert "context email=1" in x("trials", "spring").out
    assert json_of(x("ask", "spring", "--context", "email=0", "--json"))["context"] == {"email": 0}
    x("recommend", "spring", "--context", "email=1")
    assert json_of(x("best-observed", "spring", "--context", "email=0", "--json")) is None
    assert json_of(x("best-observed", "spring", "--context", "email=1", "--json"))["rounds"] == 1


def test_a_trial_that_was_handed_out_again(x):
    x("ask", "spring", "--lease", "0.001s")
    again = x("ask", "spring", "--lease", "1h").out
    assert "handed out again" in again
    assert "--issued 2" in again
    assert "late" in x("tell", "spring", 0, "buy=1", "--issued", 1).out


def test_record_and_import_and_export(x, tmp_path):
    assert x("record", "spring", "--do", "coupon=1", "email=0", "visit=1", "buy=1").out == "recorded as trial 0\n"
    assert json_of(x("record", "spring", "buy=1", "--json")) == {"trial": 1}
    csv = b"do:coupon,email,visit,buy\n1,0,1,1\n,,1,0\n"
    assert x("import", "spring", "-", stdin=csv).out == "imported 2 rounds as trials 2 to 3\n"
    assert x("export", "spring", "log.csv").out == "wrote 4 trials to log.csv\n"
    assert x("export", "spring", "-").out == (tmp_path / "log.csv").read_text()
    x("create", "copy", "graph.txt", "-k", 1)
    assert json_of(x("import", "copy", "log.csv", "--json")) == {"rounds": 4, "first": 0, "last": 3, "warnings": []}
    assert x("import", "copy", "-", stdin=b"buy\n1\n").out == "imported 1 round as trial 4\n"
    x("create", "counted", "graph.txt", "-k", 1)
    counted = b"visit,buy,count\n1,1,30\n0,0,70\n"
    assert x("import", "counted", "-", stdin=counted).out == "imported 100 rounds as trials 0 to 48\n"
    done = json_of(x("export", "copy", "log.out", "--format", "parquet", "--json"))
    assert done == {"file": "log.out", "format": "parquet", "trials": 5}
    assert (tmp_path / "log.out").read_bytes()[:4] == b"PAR1"


def test_an_import_that_came_before_is_pointed_out(x, tmp_path):
    (tmp_path / "plain.csv").write_text("do:coupon,email,visit,buy\n" + "1,0,1,1\n,,1,0\n,,0,0\n" * 5)
    first = x("import", "spring", "plain.csv")
    assert (first.out, first.err) == ("imported 15 rounds as trials 0 to 14\n", "")
    second = x("import", "spring", "plain.csv")
    assert second.out == "imported 15 rounds as trials 15 to 29\n"
    assert second.err.startswith("warning: just these rounds were imported before, as trials 0 to 14,")
    third = x("import", "spring", "plain.csv", "--json")
    assert [f"warning: {doubt}\n" for doubt in json_of(third)["warnings"]] == [second.err] == [third.err]


def test_an_export_replaces_nothing_unless_told_to_and_never_the_storage(x, tmp_path):
    (tmp_path / "notes.csv").write_text("mine")
    assert "exists" in refused(x("export", "spring", "notes.csv", code=2))
    assert (tmp_path / "notes.csv").read_text() == "mine"
    assert x("export", "spring", "notes.csv", "--force").out == "wrote 0 trials to notes.csv\n"
    (database,) = tmp_path.glob("*.db")
    before = database.read_bytes()
    for name in (database.name, database.name + "-wal"):
        assert "cannot replace the storage" in refused(
            x("export", "spring", name, "--format", "csv", "--force", code=2)
        )
    assert database.read_bytes() == before
    assert x("list", code=0).out


def test_a_long_log_is_cut_in_the_table_only(x):
    rows = "".join(f"{number},1\n" for number in range(60))
    x("import", "spring", "-", stdin=f"trial.number,buy\n{rows}".encode())
    shown = x("trials", "spring")
    assert "the last 50 of 60" in shown.err
    assert len(json_of(x("trials", "spring", "--json"))) == 60
    assert x("trials", "spring", "--all").out.count("imported") > x("trials", "spring").out.count("imported")


def test_the_data_alone_keep_to_what_is_available(x):
    x("record", "spring", "--randomised", "--do", "coupon=1", "email=0", "visit=1", "buy=1")
    x("record", "spring", "--randomised", "--do", "email=1", "coupon=0", "visit=1", "buy=0")
    answer = json_of(x("recommend", "spring", "--available", "email", "--json"))
    assert answer["best_observed"]["do"] == {"email": 1}


def test_fail_and_abandon(x):
    x("ask", "spring", "-n", 4)
    assert x("fail", "spring", 0, "the shop was closed").out == "trial 0 failed: the shop was closed\n"
    assert json_of(x("fail", "spring", 1, "--json")) == {"trial": 1, "state": "failed", "reason": ""}
    assert x("abandon", "spring", 2).out == "trial 2 abandoned\n"
    assert json_of(x("abandon", "spring", 3, "--json")) == {"trial": 3, "state": "abandoned"}
    refused(x("abandon", "spring", 0, code=2))
