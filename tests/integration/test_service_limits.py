"""Requests that are too large, too slow or malformed do the service no harm."""

import json
import socket
import threading
import time

import pytest

from dobandit.errors import StorageError
from dobandit.service.error_responses import told_to_visitors
from dobandit.storage import open_storage
from helpers.service_callers import API, problem, raw
from helpers.serving import FUNNEL, served
from helpers.worlds import THOROUGH

# -- too much, too slow, malformed ---------------------------------------------------------------------------------


def test_oversize_bodies_and_graphs():
    with served(most_bytes=2000, most_nodes=4, most_edges=3) as one:
        long = json.dumps({"graph": "x" * 5000})
        assert "2,000 bytes" in problem(one.call("POST", f"{API}/graphs/check", long), 413)

        def parts():
            for _ in range(10):
                yield b"x" * 500

        problem(one.call("POST", f"{API}/graphs/check", None, content=parts()), 413)
        for graph in ("a -> b\nc -> b\nd -> b\ne -> b", "a -> b\na -> c\nb -> c\nd -> c"):
            given = {"graph": graph, "target": graph[-1]}
            problem(one.call("POST", f"{API}/graphs/check", given), 413)
            problem(one.call("POST", f"{API}/experiments", {"name": "large", "budget": 1, **given}), 413)
        assert one.call("GET", f"{API}/experiments").json() == {"experiments": []}


def test_slow_bodies_are_not_waited_for():
    with served(body_seconds=0.15) as one:
        head = f"POST {API}/graphs/check HTTP/1.1\r\nHost: {one.host}\r\nContent-Length: 100\r\n"
        head += f"Authorization: Bearer {one.tokens['manage']}\r\n\r\n{{"
        answer = raw(one, head.encode())
        assert b" 408 " in answer
        assert b"application/problem+json" in answer
        assert one.client.get("/healthz").status_code == 200


def test_many_at_once_are_told_to_come_back():
    with served(most_at_once=0) as one:
        answer = one.client.get("/login")
        problem(answer, 503)
        assert answer.headers["retry-after"] == "1"
        assert one.client.get("/healthz").status_code == 200  # a busy service is alive


def test_more_connections_than_allowed_are_refused():
    with served(most_connections=3) as one:
        host, port = one.host.split(":")
        lines = [socket.create_connection((host, int(port)), timeout=10) for _ in range(3)]
        assert raw(one, f"GET /healthz HTTP/1.1\r\nHost: {one.host}\r\n\r\n".encode()).startswith(b"HTTP/1.1 503 ")
        for line in lines:
            line.close()
        assert one.client.get("/healthz").status_code == 200


def test_probes_do_not_share_the_limit_of_strangers():
    with served(stranger_rate=1.0) as one:
        while one.client.get("/login").status_code != 429:
            pass
        for _ in range(20):
            assert one.client.get("/healthz").status_code == 200
        problem(one.client.get("/readyz"), 503)  # which answers: this service loads no kernels


def test_rates():
    with served(stranger_rate=2.0, rate=5.0) as one:
        answers = [one.client.get("/login") for _ in range(40)]
        assert [answer.status_code for answer in answers[:6]] == [200] * 6
        refused = [answer for answer in answers if answer.status_code != 200]
        problem(refused[0], 429)
        assert int(refused[0].headers["retry-after"]) >= 1
        known = [one.call("GET", f"{API}/experiments").status_code for _ in range(12)]
        assert known == [200] * 12  # those who are known have a bucket of their own


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"n": 1, "n": 2}', "stands twice"),
        ('{"lease": NaN}', "finite"),
        ('{"lease": Infinity}', "finite"),
        ('{"lease": -Infinity}', "finite"),
        ('{"lease": 1e999}', "finite"),
        ('{"n": 1', "no JSON"),
        ("[1]", "JSON object"),
        ("[" * 1000 + "]" * 1000, "nest"),
        ('{"nn": 1}', "Did you mean 'n'"),
        (b"\xff\xfe", "UTF-8"),
        ('{"n": "1"}', "n must be"),
        ('{"available": "email"}', "available"),
        ('{"available": [[]]}', ""),
        ('{"available": 5}', ""),
        ('{"context": {"email": 1}}', "context"),
        ('{"context": [1]}', "context"),
        ('{"control": 1}', "control"),
        ('{"size": 1e3}', "size"),
        ('{"lease": "1h"}', "lease"),
        ('{"lease": [1]}', "lease"),
    ],
)
def test_malformed_asks(house, body, words):
    before = house.storage.by_id(house.spring).trials
    detail = problem(house.call("POST", f"{API}/experiments/{house.spring}/ask", body, scope="work"), 422)
    assert words in detail, detail
    assert house.storage.by_id(house.spring).trials == before


HOSTILE = [
    None,
    True,
    5,
    -1,
    1e300,
    "x",
    "/etc/passwd",
    "sqlite:///x.db",
    [],
    [[]],
    {},
    {"a": 1},
    {"": []},
    [None],
    ["x"],
]


def test_hostile_values_never_break_the_service(house):
    """Whatever stands at any key of a request is refused, or makes sense: nothing is a fault of the service. A key
    meets every other value; by `make thorough` all of them."""
    base = {"name": "fuzz", **FUNNEL}
    keys = ["name", "graph", "format", "target", "latent", "controllable", "bias", "context", "binarise", "budget"]
    keys += ["structure_only", "policy", "horizon", "seed", "lease", "links", "continuous", "effects", "hide", "levers"]
    keys += ["control", "stop_within", "history", "if_exists", "costs", "total_cost", "require", "forbid", "exclusive"]
    keys += ["smaller", "always_set"]
    for number, key in enumerate(keys):
        for value in HOSTILE if THOROUGH > 1 else HOSTILE[number % 2 :: 2]:
            answer = house.call("POST", f"{API}/experiments", {**base, key: value})
            assert answer.status_code in (201, 413, 422), (key, value, answer.text)
            if answer.status_code == 201:
                house.call("DELETE", f"{API}/experiments/{answer.json()['id']}")
            if key in ("graph", "target", "latent", "context", "hide", "always_set", "budget", "binarise", "bias"):
                checked = house.call("POST", f"{API}/graphs/check", {**FUNNEL, key: value})
                assert checked.status_code in (200, 422), (key, value, checked.text)


def test_hostile_rounds_never_break_the_service(house):
    at = f"{API}/experiments/{house.spring}"
    house.call("POST", f"{at}/ask", {"n": 1})
    for value in HOSTILE:
        for path, body in (
            ("/trials/0/tell", {"observation": value, "issued": 1}),
            ("/trials/0/tell", {"observation": {"buy": value}, "issued": 1}),
            ("/trials/0/tell", {"observation": [value], "issued": 1}),
            ("/trials/0/tell", {"observation": {"bux": 1}, "issued": value}),
            ("/trials/0/tell", {"csv": value, "issued": 1}),
            ("/trials/0/fail", {"reason": value if value != "x" else 7}),
            ("/record", {"do": value, "observation": {"bux": 1}}),
            ("/record", {"do": {"email": value}, "observation": {"bux": 1}}),
            ("/import", {"rows": value}),
            ("/import", {"rows": [value]}),
            ("/import", {"rows": [[value, value]]}),
            ("/import", {"rows": [{"do": value, "observation": value, "count": value}]}),
        ):
            answer = house.call("POST", at + path, body)
            assert answer.status_code in (200, 201, 409, 422), (path, body, answer.text)
    for query in ("do=[]", "do=5", "do=x", 'do={"email":7}', "context=[]", 'context={"email":1}', "do={"):
        problem(house.call("GET", f"{at}/evaluate?{query}"), 422) if "=[]" not in query else None
    for path in (
        "/trials?after=x",
        "/trials?limit=0",
        "/trials?limit=99999",
        "/trials?state=x",
        "/recommend?available=x",
    ):
        problem(house.call("GET", at + path), 422)
    for path in ("/trials/99999", "/trials/-1", f"/trials/{10**30}", "/trials/99999/explain"):
        assert house.call("GET", at + path).status_code in (404, 422)
    for path in (f"{API}/experiments/{10**18}", f"{API}/experiments/0", f"{API}/experiments/{2**31}"):
        problem(house.call("GET", path), 404)


def test_no_file_is_ever_read(house, tmp_path):
    """A path, an address or a URL is a text like any other."""
    table = tmp_path / "rows.csv"
    table.write_text("email,coupon,visit,buy\n0,0,1,1\n")
    at = f"{API}/experiments/{house.spring}"
    before = house.storage.by_id(house.spring).trials
    for path, body in (
        ("/record", {"do": {}, "observation": str(table)}),
        ("/record", {"do": {}, "observation": [str(table)]}),
        ("/import", {"rows": str(table)}),
        ("/import", {"rows": [str(table)]}),
        ("/record", {"csv": str(table)}),
    ):
        problem(house.call("POST", at + path, body), 422)
    for words in ({"history": str(table)}, {"graph": str(table)}, {"storage": "sqlite:///x.db"}):
        problem(house.call("POST", f"{API}/experiments", {"name": "f", **FUNNEL, **words}), 422)
    assert house.storage.by_id(house.spring).trials == before
    shown = house.call("GET", at).text
    assert "storage" not in json.loads(shown)


def test_heads_and_forms_that_cannot_be_read(house):
    browser, _ = house.log_in()
    at, own = f"{API}/experiments/{house.spring}/ask", {"Origin": house.url}
    fields = "&".join(f"a{i}=1" for i in range(20_000))
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    problem(browser.post(at, headers={**own, **kind}, content=fields), 400)
    broken = {"Content-Type": "multipart/form-data; boundary=x"}
    assert browser.post(at, headers={**own, **broken}, content=b"--y").status_code in (400, 403)
    assert browser.post(at, headers={"Origin": "http://["}).status_code in (400, 403)
    problem(house.client.post("/login", headers=own, content=b"x" * 100_000), 413)  # of a stranger
    browser.close()


def test_long_answers_leave_threads_for_asks(house):
    """However many questions wait for their answers, an ask finds a thread."""
    begun, over = threading.Semaphore(0), threading.Event()
    real = house.app.state.registry.experiment(house.spring)

    def slow(self):
        begun.release()
        over.wait(30)
        return []

    real.estimates = slow.__get__(real)
    at = f"{API}/experiments/{house.spring}"
    askers = [threading.Thread(target=house.call, args=("GET", f"{at}/estimates?{i}")) for i in range(50)]
    for asker in askers:
        asker.start()
    try:
        assert begun.acquire(timeout=30)
        assert house.call("POST", f"{at}/ask", {}).status_code == 201
        assert house.client.get("/healthz").status_code == 200
    finally:
        over.set()
        for asker in askers:
            asker.join(timeout=60)
        del real.estimates


def test_the_frameworks_own_errors_are_problems(house):
    problem(house.call("GET", "/nothing/here"), 404)
    assert "does not take" in problem(house.call("PUT", f"{API}/experiments", {}), 405)
    problem(house.call("GET", f"{API}/experiments/x"), 404)
    assert "query limit" in problem(house.call("GET", f"{API}/audit?limit=0"), 422)
    problem(house.call("GET", f"{API}/experiments/1/trials?after=x"), 422)
    problem(house.call("POST", f"{API}/experiments/1/ask", "<xml/>", headers={"Content-Type": "text/xml"}), 415)


def test_nobody_is_told_where_a_database_is_by_the_database_itself():
    storage = open_storage("postgresql://shop:geheim@127.0.0.1:1/ledger")  # where nobody listens
    with pytest.raises(StorageError, match=r"127\.0\.0\.1") as refused:
        storage.find("spring")
    told = told_to_visitors(refused.value, storage)
    assert told.startswith("the storage refused this, or is not there. Nothing of this was stored.")
    for secret in ("127.0.0.1", "port", "shop", "geheim", "ledger"):
        assert secret not in told


def test_heads_without_an_end_are_refused():
    """Long heads, in many lines or in one, and what comes behind a body in parts."""
    with served() as one:
        first = f"GET /healthz HTTP/1.1\r\nHost: {one.host}\r\n".encode()
        assert raw(one, first + b"X: 1\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        assert raw(one, first + b"X: " + b"y" * 30_000 + b"\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        assert raw(one, first + b"X: " + b"y" * 20_000, b"y\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        assert raw(one, first + b"X: " + b"y" * 40_000).startswith(b"HTTP/1.1 400 ")
        assert raw(one, first + (b"X: " + b"y" * 1000 + b"\r\n") * 40).startswith(b"HTTP/1.1 400 ")
        assert raw(one, b"GET /" + b"y" * 40_000).startswith(b"HTTP/1.1 400 ")
        parts = b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ny\r\n0\r\n"
        for endless in (b"GET / HTTP/1.1\r\nX: ", b"GET /", parts + b"X: "):
            assert never_ends(one, endless) < 2**20


def never_ends(one, beginning):
    """How many bytes of something without an end a connection takes."""
    host, port = one.host.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(beginning)
        sent = 0
        try:
            while sent < 2**26:
                sent += line.send(b"y" * 4096)
                time.sleep(0.001)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return sent


def test_what_comes_behind_a_body_is_no_header():
    """A token behind a body in parts lets nobody in, and two lengths are none."""
    with served() as one:
        head = f"POST {API}/graphs/check HTTP/1.1\r\nHost: {one.host}\r\nTransfer-Encoding: chunked\r\n"
        body = "\r\n2\r\n{}\r\n0\r\n"
        token = f"Authorization: Bearer {one.tokens['manage']}\r\n"
        assert b" 401 " in raw(one, f"{head}{body}{token}\r\n".encode())
        assert b" 422 " in raw(one, f"{head}{token}{body}\r\n".encode())
        assert b" 400 " in raw(one, f"{head}{token}Content-Length: 2\r\n{body}\r\n".encode())
