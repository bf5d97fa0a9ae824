"""The API: words, answers, keys that make repetitions harmless, tags, pages, events, the audit."""

import csv
import io
import json
import threading
import time

import jsonschema
import pytest

import dobandit as dob
from dobandit.documents.live import recommendation_document
from dobandit.storage import open_storage
from dobandit.storage.access import create_token, revoke_token
from helpers.serving import FUNNEL, served

API = "/api/v1"
SEEN = {"email": 0, "coupon": 0, "visit": 1, "buy": 1}


@pytest.fixture
def house(tmp_path):
    storage = open_storage(f"sqlite:///{tmp_path}/spring.db")
    with served(storage, look_seconds=0.05) as one:
        one.spring = one.create()
        one.at = f"{API}/experiments/{one.spring}"
        yield one
    storage.close()


def seen_after(trial):
    return {**SEEN, **trial["do"]}


def test_explanations_say_what_their_intervals_promise(house):
    house.call("POST", f"{house.at}/ask", {})
    said = house.call("GET", f"{house.at}/trials/0/explain").json()
    assert said["interval_words"] == "95%, at every look (asymptotic)"


def test_a_round_over_http_is_a_round(house):
    """The same experiment, asked here and there, says the same in the same words."""
    local = dob.create_experiment(
        "local", dob.parse_graph(FUNNEL["graph"], "edgelist", target="buy"), 1, storage=house.storage, seed=7
    )
    for _ in range(6):
        asked = house.call("POST", f"{house.at}/ask", {}, scope="work")
        assert asked.status_code == 201
        (said,) = asked.json()["trials"]
        trial = local.ask()
        assert (said["trial"], said["do"], said["predicted"], said["why"], said["issued"]) == (
            trial.number,
            trial.do,
            trial.predicted,
            trial.why,
            1,
        )
        assert (said["interval"], said["interval_words"]) == (list(trial.interval), local.interval_words)
        told = house.call(
            "POST", f"{house.at}/trials/{said['trial']}/tell", {"observation": seen_after(said), "issued": 1}
        )
        assert told.json()["partial"] is False
        local.tell(trial, seen_after(said))
    recommended = house.call("GET", f"{house.at}/recommend", scope="read").json()
    assert recommended == json.loads(json.dumps(recommendation_document(local.recommend(), local.best_observed())))
    assert house.call("GET", f"{house.at}/diagnose").json() == json.loads(json.dumps(local.diagnose().to_document()))
    rows = house.call("GET", f"{house.at}/trials").json()["trials"]
    times = ("asked_at", "closed_at")
    assert [{**row, **dict.fromkeys(times)} for row in rows] == [
        {**row, **dict.fromkeys(times)} for row in local.trials()
    ]
    assert house.call("GET", f"{house.at}/export.csv").text.count("\n") == 7
    shown = house.call("GET", house.at).json()
    assert (shown["id"], shown["told"], shown["definition"]["seed"]) == (house.spring, 6, 7)


def test_conflicts_and_what_is_missing(house):
    house.call("POST", f"{house.at}/ask", {"n": 2})
    tell = {"observation": {"visit": 1, "buy": 0}, "issued": 1}
    first = house.call("POST", f"{house.at}/trials/0/tell", tell)
    assert first.json()["repeated"] is False
    assert house.call("POST", f"{house.at}/trials/0/tell", tell).json()["repeated"] is True
    other = house.call("POST", f"{house.at}/trials/0/tell", {**tell, "observation": {"visit": 1, "buy": 1}})
    assert (other.status_code, other.json()["error"]) == (409, "ConflictError")
    assert "already told" in other.json()["detail"]
    unsaid = house.call("POST", f"{house.at}/trials/1/tell", {"observation": {"buy": 1}})
    assert unsaid.status_code == 422
    assert "issued" in unsaid.json()["detail"]
    assert house.call("POST", f"{house.at}/trials/1/fail", {"reason": "rain"}).json()["reason"] == "rain"
    assert house.call("POST", f"{house.at}/trials/1/abandon").status_code == 409
    for method, path in (("POST", "/trials/9/tell"), ("POST", "/trials/9/abandon"), ("GET", "/trials/9")):
        assert house.call(method, house.at + path, tell if "tell" in path else None).status_code == 404
    taken = house.call("POST", f"{API}/experiments", {"name": "spring", **FUNNEL})
    assert "sqlite" not in taken.text
    assert (taken.status_code, taken.json()["error"]) == (409, "TakenError")


def test_a_wrong_graph_says_where(house):
    answer = house.call("POST", f"{API}/graphs/check", {"graph": "a -> b\nb -> ", "target": "b"})
    said = answer.json()
    assert (answer.status_code, said["error"], said["line"], said["column"]) == (422, "ParseError", 2, 6)
    good = house.call("POST", f"{API}/graphs/check", {**FUNNEL, "latent": ["email"]}).json()
    assert (good["valid"], good["latent"], good["admissible"]) == (True, ["email"], True)
    model = {"target": "Y", "nodes": {"A": {"bias": 0.5}, "Y": {"parents": {"A": 0.3}}}}
    assert house.call("POST", f"{API}/graphs/check", {"graph": model}).json()["kind"] == "model"
    assert house.call("POST", f"{API}/graphs/check", {"graph": json.dumps(model)}).json()["kind"] == "model"


# -- lost answers --------------------------------------------------------------------------------------------------


def test_a_key_makes_a_repetition_harmless(house):
    calls = {
        f"{house.at}/ask": {"n": 2},
        f"{house.at}/record": {"do": {"email": 1}, "observation": {"visit": 1, "buy": 0}},
        f"{house.at}/import": {"rows": [[{"coupon": 1}, {"visit": 1, "buy": 1}]] * 3},
        f"{API}/experiments": {"name": "summer", **FUNNEL},
    }
    for path, body in calls.items():
        headers = {"Idempotency-Key": f"key of {path}".replace(" ", "-")}
        first = house.call("POST", path, body, headers=headers)
        assert first.status_code == 201, first.text
        trials, lines = house.storage.by_id(house.spring).trials, len(house.storage.audit())
        for _ in range(2):
            again = house.call("POST", path, body, headers=headers)
            assert (again.status_code, again.content) == (201, first.content)
            assert again.headers["idempotency-replayed"] == "true"
        assert (house.storage.by_id(house.spring).trials, len(house.storage.audit())) == (trials, lines)
        another = house.call("POST", path, {**body, "n" if "ask" in path else "name": 1}, headers=headers)
        assert another.status_code == 422
    assert len(house.storage.experiments()) == 2
    wrong = house.call("POST", f"{house.at}/ask", {"n": 1}, headers={"Idempotency-Key": f"key-of-{house.at}/ask"})
    assert wrong.status_code == 422
    assert "another one" in wrong.json()["detail"]


_ROUNDS = "email,coupon,visit,buy\n1,0,1,1\n0,0,0,0\n"


def test_an_experiment_that_is_there_may_begin_with_a_history(house):
    words = {"name": "spring", "seed": 7, **FUNNEL, "if_exists": "open", "history": {"csv": _ROUNDS}}
    for _ in range(2):
        opened = house.call("POST", f"{API}/experiments", words, headers={"Idempotency-Key": "opened"})
        assert (opened.status_code, opened.json()["created"]) == (201, False), opened.text
        assert opened.json()["id"] == house.spring
    assert house.call("GET", f"{house.at}/status").json()["rounds"] == 2


def test_keys_belong_to_who_sent_them(house):
    headers = {"Idempotency-Key": "the-same"}
    numbers = [
        house.call("POST", f"{house.at}/ask", {}, scope=scope, headers=headers).json()["trials"][0]["trial"]
        for scope in ("work", "manage", "work", "manage")
    ]
    assert numbers == [0, 1, 0, 1]
    for key in ("", "a" * 201, "two words"):
        answer = house.call("POST", f"{house.at}/ask", {}, headers={"Idempotency-Key": key})
        assert answer.status_code in (400, 422)


def test_the_same_key_at_the_same_time(house):
    found = []

    def ask():
        found.append(house.call("POST", f"{house.at}/ask", {}, headers={"Idempotency-Key": "once"}).content)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert house.storage.by_id(house.spring).trials == 1


def test_a_refused_deed_keeps_no_answer(house):
    headers = {"Idempotency-Key": "mine"}
    assert house.call("POST", f"{house.at}/ask", {"n": 0}, headers=headers).status_code == 422
    assert house.call("POST", f"{house.at}/ask", {"n": 1}, headers=headers).status_code == 201


# -- reading -------------------------------------------------------------------------------------------------------


def test_tags_change_with_the_answers(house):
    rows = [[{"coupon": 1}, {"email": 0, "visit": 1, "buy": 1}], [{}, {"email": 0, "coupon": 0, "visit": 0, "buy": 0}]]
    house.call("POST", f"{house.at}/import", {"rows": rows})
    house.call("POST", f"{house.at}/ask", {})
    paths = ["", "/status", "/trials", "/trials/0", "/trials/2/explain", "/recommend", "/best-observed", "/estimates"]
    paths += ["/diagnose", '/evaluate?do={"email":1}', "/recommend?available=email"]
    tags, contents = {}, {}
    for path in paths:
        first = house.call("GET", house.at + path)
        tags[path], contents[path] = first.headers["etag"], first.content
        again = house.call("GET", house.at + path, headers={"If-None-Match": tags[path]})
        assert (again.status_code, again.content) == (304, b""), path
        assert again.headers["etag"] == tags[path]
        assert house.call("GET", house.at + path).content == first.content
    seen = seen_after(house.call("GET", f"{house.at}/trials/2").json())
    house.call("POST", f"{house.at}/trials/2/tell", {"observation": seen, "issued": 1})
    for path in paths:
        answer = house.call("GET", house.at + path, headers={"If-None-Match": tags[path]})
        same = house.call("GET", house.at + path).content == contents[path]
        assert answer.status_code == (304 if same else 200), path
        assert same == (path in ("/trials/0", "/trials/2/explain")), path


def test_trials_come_in_pages(house):
    house.call("POST", f"{house.at}/ask", {"n": 7})
    for number in (1, 4):
        house.call("POST", f"{house.at}/trials/{number}/abandon")
    found, after = [], -1
    while after is not None:
        page = house.call("GET", f"{house.at}/trials?after={after}&limit=3").json()
        assert len(page["trials"]) <= 3
        found += [row["trial"] for row in page["trials"]]
        after = page["next"]
    assert found == list(range(7))
    pending = house.call("GET", f"{house.at}/trials?state=pending&limit=4").json()
    assert [row["trial"] for row in pending["trials"]] == [0, 2, 3, 5]
    assert pending["next"] == 5
    assert house.call("GET", f"{house.at}/trials?after=99").json() == {"trials": [], "next": None}


def test_experiments_come_in_pages(house):
    for name in ("b", "c", "a/b"):
        house.create(name)
    first = house.call("GET", f"{API}/experiments?limit=2").json()["experiments"]
    assert [one["name"] for one in first] == ["a/b", "b"]
    rest = house.call("GET", f"{API}/experiments?after=b").json()["experiments"]
    assert [one["name"] for one in rest] == ["c", "spring"]
    assert house.call("GET", f"{API}/experiments", params={"name": "a/b"}).json()["experiments"][0]["name"] == "a/b"


def test_events_tell_what_happens(house):
    headers = {"Authorization": f"Bearer {house.tokens['read']}"}
    with house.client.stream("GET", f"{house.at}/events", headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        data = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        assert next(data) == {"trials": 0, "closed": 0, "name": "spring"}
        house.call("POST", f"{house.at}/ask", {})
        assert next(data) == {"trials": 1, "closed": 0, "name": "spring"}
        house.call("DELETE", house.at)
        assert "deleted" in next(data)["detail"]


def test_events_end_with_the_token_that_opened_them_and_a_stream_that_is_left_makes_room(house):
    token, stored = create_token(house.storage, "screen", "read", time.time(), "the tests")
    headers = {"Authorization": f"Bearer {token}"}
    with house.client.stream("GET", f"{house.at}/events", headers=headers) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: trials"
        assert house.app.state.auth.under_way["event streams"] == 1
        revoke_token(house.storage, stored.id, time.time(), "the tests")
        rest = [line for line in lines if line]
    assert rest[-2] == "event: end"
    assert "revoked" in rest[-1]
    with house.client.stream("GET", f"{house.at}/events", headers={"Authorization": f"Bearer {house.tokens['read']}"}):
        pass
    for _ in range(200):
        if house.app.state.auth.under_way["event streams"] == 0:
            break
        time.sleep(0.02)
    assert house.app.state.auth.under_way["event streams"] == 0


def test_every_change_leaves_a_line(house):
    house.call("POST", f"{house.at}/ask", {}, scope="work")
    tell = {"observation": {"visit": 1, "buy": 0}, "issued": 1}
    house.call("POST", f"{house.at}/trials/0/tell", tell, scope="work")
    house.call("POST", f"{house.at}/trials/0/tell", tell, scope="work")  # changes nothing
    house.call("POST", f"{house.at}/trials/0/abandon", scope="work")  # refused
    house.call("PATCH", house.at, {"name": "summer"})
    house.call("DELETE", house.at)
    said = house.call("GET", f"{API}/audit?experiment={house.spring}").json()
    assert [(line["who"], line["what"], line["name"], line["detail"]) for line in said["audit"]] == [
        ("manage (token 3)", "create", "spring", "0 trials"),
        ("work (token 2)", "ask", "spring", "trial 0"),
        ("work (token 2)", "tell", "spring", "trial 0"),
        ("manage (token 3)", "rename", "spring", "now summer"),
        ("manage (token 3)", "delete", "summer", ""),
    ]
    table = list(csv.DictReader(io.StringIO(house.call("GET", f"{API}/audit.csv").text)))
    assert [row["what"] for row in table][-5:] == ["create", "ask", "tell", "rename", "delete"]
    page = house.call("GET", f"{API}/audit?limit=2").json()
    assert (len(page["audit"]), page["next"]) == (2, page["audit"][-1]["number"])


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_numbers_that_no_database_keeps_are_refused(house, number):
    for path in ("audit?after", "audit?experiment", "audit.csv?experiment"):
        answer = house.call("GET", f"{API}/{path}={number}")
        assert answer.status_code == 422, answer.text
        assert str(number) in answer.json()["detail"]
    assert house.call("GET", f"{API}/audit?after={2**63 - 1}").json() == {"audit": [], "next": None}


def test_no_cell_of_the_audit_is_a_formula(house):
    evil = "=HYPERLINK(1)"
    create_token(house.storage, "@SUM(1)", "read", time.time(), "-2+3")
    house.call("PATCH", house.at, {"name": evil})
    house.call("DELETE", house.at)
    text = house.call("GET", f"{API}/audit.csv").text
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert f"'{evil}" in cells
    assert "'-2+3" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_the_api_describes_itself(house):
    document = house.call("GET", f"{API}/openapi.json").json()
    assert document["openapi"].startswith("3.")
    paths = document["paths"]
    assert set(paths[f"{API}/experiments/{{experiment}}"]) == {"get", "patch", "delete"}
    for path, operations in paths.items():
        assert path.startswith(API)
        for operation in operations.values():
            assert "422" not in operation["responses"]
            assert "application/problem+json" in operation["responses"]["default"]["content"]
    names = [operation["operationId"] for operations in paths.values() for operation in operations.values()]
    assert len(names) == len(set(names))
    assert {"ask", "tell", "recommend", "list_experiments"} <= set(names)
    for table in ("experiments/{experiment}/export.csv", "audit.csv"):
        assert "text/csv" in paths[f"{API}/{table}"]["get"]["responses"]["200"]["content"]
    assert set(document["components"]["schemas"]["AskedTrial"]["required"]) >= {
        "trial",
        "do",
        "predicted",
        "interval",
        "why",
        "lease_expires",
        "issued",
    }
    page = house.call("GET", f"{API}/docs").text.replace("<wbr>", "")  # where an address may be broken
    assert "POST /api/v1/experiments/{experiment}/ask" in page
    assert "//" not in page.replace("</", "")  # nothing from another host


def test_answers_have_the_shapes_that_are_described(house):
    document = house.call("GET", f"{API}/openapi.json").json()

    def check(method, path, body=None, **given):
        address = path.format(experiment=house.spring, **given)
        answer = house.call(method, f"{API}{address}", body)
        assert answer.status_code < 300, answer.text
        operation = document["paths"][f"{API}{path.partition('?')[0]}"][method.lower()]
        schema = operation["responses"][str(answer.status_code)]["content"]["application/json"]["schema"]
        shape = jsonschema.Draft202012Validator({**schema, "components": document["components"]})
        shape.validate(answer.json())
        return answer.json()

    one = "/experiments/{experiment}"
    for _ in range(3):
        check("POST", f"{one}/ask", {"n": 2, "lease": 60, "control": True})
    for number in range(4):
        told = {"observation": {"visit": number % 2, "buy": number % 2}, "issued": 1}
        check("POST", f"{one}/trials/{{number}}/tell", told, number=number)
    check("POST", f"{one}/trials/{{number}}/fail", {"reason": "closed"}, number=4)
    check("POST", f"{one}/trials/{{number}}/abandon", number=5)
    check("POST", f"{one}/record", {"do": {"coupon": 1}, "observation": {"visit": 1, "buy": 1}})
    check("POST", f"{one}/import", {"rows": [{"do": {"coupon": 1}, "observation": {"visit": 1, "buy": 0}}] * 40})
    for answer in ("", "/status", "/trials", "/recommend", "/best-observed", "/estimates", "/promises", "/diagnose"):
        check("GET", one + answer)
    for answer in ("", "/explain"):
        check("GET", f"{one}/trials/{{number}}{answer}", number=1)
    check("GET", f"{one}/evaluate")
    check("POST", "/graphs/check", FUNNEL)
    check("POST", "/experiments", {"name": "described", **FUNNEL})
    check("GET", "/experiments")
    check("PATCH", one, {"name": "renamed"})
    check("DELETE", one)
    check("GET", "/audit")


def test_the_examples_of_the_description_work(house):
    """What the document gives as examples is accepted as it stands."""
    paths = house.call("GET", f"{API}/openapi.json").json()["paths"]
    made = paths[f"{API}/experiments"]["post"]["requestBody"]["content"]["application/json"]["example"]
    number = house.call("POST", f"{API}/experiments", {**made, "name": "example"}).json()["id"]
    house.call("POST", f"{API}/experiments/{number}/ask", {"n": 6})
    trials = {"tell": 3, "fail": 4, "abandon": 5}
    for path in ("ask", "tell", "fail", "abandon", "record", "import"):
        template = f"{API}/experiments/{{experiment}}/" + (f"trials/{{number}}/{path}" if path in trials else path)
        content = paths[template]["post"]["requestBody"]["content"]
        address = template.replace("{experiment}", str(number)).replace("{number}", str(trials.get(path)))
        for kind, one in content.items():
            body = one["example"]
            answer = house.call("POST", address, body, headers={"Content-Type": kind})
            assert answer.status_code in (200, 201), (path, answer.text)


def test_health_and_figures(house):
    assert house.client.get("/healthz").status_code == 200
    ready = house.client.get("/readyz")
    assert (ready.status_code, ready.headers["retry-after"]) == (503, "5")
    house.app.state.warmth.warm()
    assert house.client.get("/readyz").json() == {"status": "ready"}
    assert house.client.get("/metrics").status_code == 401
    text = house.call("GET", "/metrics", scope="read").text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines["dobandit_experiments"] == "1"
    assert any(key.startswith("dobandit_requests_total{") and 'status="503"' in key for key in lines)
    counts = [float(value) for key, value in lines.items() if key.startswith("dobandit_request_seconds_count")]
    totals = [float(value) for key, value in lines.items() if key.startswith("dobandit_requests_total")]
    assert sum(counts) == sum(totals)


def test_a_storage_that_is_gone_is_a_503(tmp_path):
    storage = open_storage(f"sqlite:///{tmp_path}/spring.db")
    with served(storage) as one:
        number = one.create()
        (tmp_path / "spring.db").rename(tmp_path / "away.db")
        answer = one.client.get("/readyz")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert str(tmp_path) not in answer.text
        token = one.call("GET", f"{API}/experiments")
        assert (token.status_code, str(tmp_path) in token.text) == (503, False)
        assert token.headers["x-frame-options"] == "DENY"
        (tmp_path / "away.db").rename(tmp_path / "spring.db")
        assert one.call("GET", f"{API}/experiments/{number}").status_code == 200
    storage.close()


def test_head_gives_the_head_of_what_get_gives(house):
    for path in ("/healthz", house.at, f"{house.at}/recommend", f"{API}/experiments", "/static/style.css"):
        head, whole = house.call("HEAD", path), house.call("GET", path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(whole.content))
        assert head.headers.get("etag") == whole.headers.get("etag")
    assert house.client.head(f"{API}/experiments").status_code == 401
    assert house.call("HEAD", f"{house.at}/events").status_code == 405


def test_what_an_address_takes_is_said_in_full(house):
    refused = house.call("PUT", house.at, {})
    assert (refused.status_code, refused.headers["allow"]) == (405, "DELETE, GET, PATCH")
    assert house.call("GET", f"{house.at}/ask").headers["allow"] == "POST"


@pytest.mark.parametrize("path", [f"{API}/experiments/spring", f"{API}/experiments/1.5/ask", "/experiments/spring"])
def test_an_experiment_or_trial_that_is_no_number_is_not_found(house, path):
    answer = house.call("POST" if path.endswith("ask") else "GET", path)
    assert answer.status_code == 404
    assert f"there is nothing at {path}." in answer.json()["detail"]
