"""Attacks on the service, each by its name: what is not let in reaches no route."""

import json
import re
import socket
import threading
import time

import httpx
import pytest

from dobandit.errors import StorageError
from dobandit.experiment.storage import MemoryStorage, open_storage
from dobandit.experiment.tokens import create_token, revoke_token, token_of
from dobandit.service.problems import told_to_visitors
from serving import FUNNEL, served

API = "/api/v1"
PUBLIC = {"/login", "/healthz", "/readyz", "/static/drawn.css"}


@pytest.fixture(scope="module")
def house():
    with served() as one:
        one.spring, one.other = one.create(), one.create("other")
        yield one


def routes_of(app, methods=("POST", "PATCH", "DELETE", "PUT")):
    """Every route with one of these verbs, found by walking the app: those that are added later, too."""
    found = set()
    for route in app.routes:
        parts = route.effective_route_contexts() if hasattr(route, "effective_route_contexts") else [route]
        for part in parts:
            for method in (getattr(part, "methods", None) or set()) & set(methods):
                found.add((method, re.sub(r"\{[^}]*\}", "1", part.path)))
    return sorted(found)


def problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == status
    assert said["detail"]
    return said["detail"]


def test_walking_finds_the_routes(house):
    found = routes_of(house.app)
    assert ("POST", "/api/v1/experiments/1/ask") in found
    assert ("DELETE", "/api/v1/experiments/1") in found
    assert ("POST", "/logout") in found
    assert len(found) >= 12


# -- nobody, somebody ----------------------------------------------------------------------------------------------


def test_nothing_is_open_but_what_must_be(house):
    for method, path in routes_of(house.app, ("GET", "POST", "PATCH", "DELETE", "PUT")):
        if path in PUBLIC:
            continue
        detail = problem(house.client.request(method, path), 401)
        assert "token" in detail, (method, path)
    assert house.client.get("/healthz").json() == {"status": "ok"}
    assert house.client.get("/", headers={"Accept": "text/html"}).headers["location"] == "/login"
    assert house.client.get("/static/style.css").status_code == 200


@pytest.mark.parametrize(
    "token", ["x", "dob_1_" + "a" * 43, "dob_999_" + "a" * 43, "nonsense", "dob_1", "\xff", "a" * 9000]
)
def test_wrong_tokens(house, token):
    header = b"Bearer " + token.encode("latin-1")
    answer = house.client.get(f"{API}/experiments", headers={"Authorization": header})
    assert "revoked" in problem(answer, 401)
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_token_is_kept_as_a_hash_and_opens_until_it_is_revoked_or_expires():
    storage, now = MemoryStorage(), 1000.0
    text, token = create_token(storage, "shop", "work", now, "me", expires_at=2000.0)
    secret = text.rpartition("_")[2] if text.count("_") == 2 else text.split("_", 2)[2]
    assert secret not in repr(storage.tokens())
    assert token_of(storage, text, 1999.0) == token
    assert token_of(storage, text, 2000.0) is None
    assert token_of(storage, text[:-1] + ("A" if text[-1] != "A" else "B"), now) is None
    revoke_token(storage, token.id, 1500.0, "me")
    assert token_of(storage, text, 1600.0) is None
    assert [line.what for line in storage.audit()] == ["create token", "revoke token"]


def test_scopes(house):
    at = f"{API}/experiments/{house.spring}"
    assert house.call("GET", at, scope="read").status_code == 200
    assert "'work'" in problem(house.call("POST", f"{at}/ask", {}, scope="read"), 403)
    assert house.call("POST", f"{at}/ask", {}, scope="work").status_code == 201
    for method, path, body in (
        ("POST", f"{API}/experiments", {"name": "x", **FUNNEL}),
        ("PATCH", at, {"name": "x"}),
        ("DELETE", at, None),
        ("GET", f"{API}/audit", None),
        ("GET", f"{API}/audit.csv", None),
    ):
        assert "'manage'" in problem(house.call(method, path, body, scope="work"), 403)
    for method, path in routes_of(house.app):
        if path not in PUBLIC | {"/logout"}:
            problem(house.call(method, path, {}, scope="read"), 403)


def test_a_token_for_one_experiment_knows_of_no_other(house):
    token = house.token("manage", experiment="spring")
    assert house.call("GET", f"{API}/experiments/{house.spring}", token=token).status_code == 200
    listed = house.call("GET", f"{API}/experiments", token=token).json()["experiments"]
    assert [one["name"] for one in listed] == ["spring"]
    assert house.call("GET", f"{API}/experiments?name=other", token=token).json() == {"experiments": []}
    for method, path in (
        ("GET", f"{API}/experiments/{house.other}"),
        ("GET", f"{API}/experiments/{house.other}/trials"),
        ("POST", f"{API}/experiments/{house.other}/ask"),
        ("DELETE", f"{API}/experiments/{house.other}"),
        ("GET", f"{API}/audit"),
        ("GET", f"{API}/audit?experiment={house.other}"),
        ("GET", f"{API}/experiments/{house.spring}/../{house.other}"),
        ("GET", f"{API}/experiments/0{house.other}"),
        ("GET", "/metrics"),
    ):
        problem(house.call(method, path, token=token), 403)
    answer = house.call("POST", f"{API}/experiments", {"name": "mine", **FUNNEL}, token=token)
    assert answer.status_code == 403


# -- browsers ------------------------------------------------------------------------------------------------------


def test_rebinding_another_name_leads_nowhere(house):
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:8765", "", "localhost.evil", "[::2]:80"):
        for path in ("/", "/healthz", f"{API}/experiments", "/login", "/static/style.css"):
            answer = house.client.get(path, headers={"Host": host})
            assert answer.status_code in (421, 400), (host, path)
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:8765"):
        assert house.client.get("/healthz", headers={"Host": host}).status_code == 200


def test_two_hosts_in_one_request(house):
    head = f"GET /healthz HTTP/1.1\r\nHost: {house.host}\r\nHost: evil.example\r\n\r\n"
    assert b"200 OK" not in raw(house, head.encode())


def test_the_login_link_works_once(house):
    code = house.app.state.login.code
    assert httpx.get(f"{house.url}/login", params={"code": code + "x"}).status_code == 403
    entered = httpx.get(f"{house.url}/login", params={"code": code})
    cookie = entered.headers["set-cookie"]
    assert entered.status_code == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert httpx.get(f"{house.url}/login", params={"code": code}).status_code == 403


def test_cross_origin_changes_are_refused_for_every_unsafe_verb(house):
    browser, csrf = house.log_in()
    own = house.url
    for method, path in routes_of(house.app):
        if path in ("/login", "/logout"):
            continue
        for headers in (
            {},  # no Origin, no token
            {"X-CSRF-Token": csrf},  # no Origin
            {"Origin": "null", "X-CSRF-Token": csrf},
            {"Origin": "http://evil.example", "X-CSRF-Token": csrf},
            {"Origin": "http://127.0.0.1:1", "X-CSRF-Token": csrf},  # another port of this machine
            {"Origin": f"{own}.evil.example", "X-CSRF-Token": csrf},
            {"Origin": "http://evil@" + house.host, "X-CSRF-Token": csrf},
            {"Origin": own},  # no token
            {"Origin": own, "X-CSRF-Token": csrf[:-1]},
            {"Origin": own, "X-CSRF-Token": csrf, "Sec-Fetch-Site": "cross-site"},
            {"Origin": own, "X-CSRF-Token": csrf, "Sec-Fetch-Site": "same-site"},
        ):
            answer = browser.request(method, path, headers=headers, json={})
            assert answer.status_code == 403, (method, path, headers, answer.text)
    browser.close()


def test_a_form_of_our_own_page_is_let_through(house):
    browser, csrf = house.log_in()
    at, own = f"{API}/experiments/{house.spring}/ask", {"Origin": house.url, "Sec-Fetch-Site": "same-origin"}
    asked = browser.post(at, headers={**own, "X-CSRF-Token": csrf}, json={})
    assert asked.status_code == 201
    form = browser.post(at, headers=own, data={"csrf": csrf})
    assert form.status_code == 415  # past the guard: the API takes no forms
    parts = browser.post(at, headers=own, data={"csrf": csrf}, files={"f": b"x"})
    assert parts.status_code == 415
    assert browser.post(at, headers=own, data={"csrf": "wrong"}, files={"f": b"x"}).status_code == 403
    assert browser.post("/logout", headers=own, data={"csrf": csrf}).status_code == 303
    assert browser.get(f"{API}/experiments").status_code == 401
    browser.close()


def test_a_login_from_another_site_is_refused(house):
    form = {"token": house.tokens["manage"]}
    for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert httpx.post(f"{house.url}/login", data=form, headers=headers).status_code == 403
    entered = httpx.post(f"{house.url}/login", data=form, headers={"Origin": house.url})
    assert entered.status_code == 303


def test_a_cookie_is_read_by_pages_of_this_port_only(house):
    """Browsers send a cookie to every port of a machine, and tell which page asks."""
    browser, _ = house.log_in()
    for site in ("same-site", "cross-site"):
        fetched = browser.get(f"{API}/experiments", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"})
        problem(fetched, 403)
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert browser.get("/", headers=followed).status_code == 200
    assert "access-control-allow-origin" not in browser.get(f"{API}/experiments").headers
    cookie = next(iter(browser.cookies.jar))
    assert cookie.name == "dobandit-8765"  # with the port: another service does not overwrite it
    with served() as another:
        stolen = httpx.get(f"{another.url}{API}/experiments", headers={"Cookie": f"{cookie.name}={cookie.value}"})
        assert stolen.status_code == 401
    browser.close()


def test_a_session_ends_with_the_token_that_opened_it():
    storage = MemoryStorage()
    with served(storage) as one:
        text, token = create_token(storage, "phone", "read", time.time(), "me")
        browser = httpx.Client(base_url=one.url)
        browser.post("/login", data={"token": text}, headers={"Origin": one.url})
        assert browser.get(f"{API}/experiments").status_code == 200
        revoke_token(storage, token.id, time.time(), "me")
        assert browser.get(f"{API}/experiments").status_code == 401
        browser.close()


def test_sessions_expire():
    now = [1000.0]
    with served(clock=lambda: now[0], session_seconds=60.0) as one:
        browser, _ = one.log_in()
        assert browser.get(f"{API}/experiments").status_code == 200
        now[0] += 61.0
        assert browser.get(f"{API}/experiments").status_code == 401
        browser.close()


def test_every_answer_has_the_headers(house):
    for path in ("/", "/login", "/healthz", "/nothing", f"{API}/experiments", f"{API}/docs", "/static/style.css"):
        for answer in (house.client.get(path), house.call("GET", path)):
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "script-src 'self'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert "server" not in answer.headers


def test_https_cookies_and_headers():
    with served(https=True) as one:
        entered = httpx.get(f"{one.url}/login", params={"code": one.app.state.login.code})
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith("__Host-dobandit-")
        assert "Secure" in cookie
        assert "max-age" in entered.headers["strict-transport-security"]


def test_hostile_names_are_text_on_every_page(house):
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{7*7}}"
    number = house.create(hostile)
    browser, _ = house.log_in()
    for path in ("/", "/login", f"/{hostile}", f"{API}/docs"):
        text = browser.get(path, headers={"Accept": "text/html"}).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "{{7*7}}" in text or "alert" not in text
    assert house.call("GET", f"{API}/experiments/{number}").json()["name"] == hostile
    assert house.call("DELETE", f"{API}/experiments/{number}").status_code == 200
    browser.close()


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


def raw(house, data, wait=5.0):
    """What the service answers to bytes, until it closes."""
    host, port = house.host.split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as line:
        line.sendall(data)
        found = b""
        try:
            while part := line.recv(65536):
                found += part
                if b"\r\n\r\n" in found and b"close" not in found.lower():
                    break
        except (TimeoutError, ConnectionResetError):
            pass
        return found


def closes_after(one, data):
    """Seconds until a connection that sends this and then nothing is closed."""
    host, port = one.host.split(":")
    started = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(data)
        try:
            while line.recv(65536):
                pass
        except ConnectionResetError:
            pass
    return time.monotonic() - started


def test_slow_heads_and_bodies_are_not_waited_for():
    with served(header_seconds=0.3, body_seconds=0.3) as one:
        assert closes_after(one, b"") < 3
        assert closes_after(one, b"GET /healthz HTTP/1.1\r\nHost: loc") < 3
        answered = f"GET /healthz HTTP/1.1\r\nHost: {one.host}\r\n\r\n".encode()
        assert closes_after(one, answered + b"GET /heal") < 3  # the second head of a connection
        head = f"POST {API}/graphs/check HTTP/1.1\r\nHost: {one.host}\r\nContent-Length: 100\r\n"
        head += f"Authorization: Bearer {one.tokens['manage']}\r\n\r\n{{"
        answer = raw(one, head.encode())
        assert b" 408 " in answer
        assert b"application/problem+json" in answer
        assert one.client.get("/healthz").status_code == 200


def test_many_at_once_are_told_to_come_back():
    with served(most_at_once=0) as one:
        answer = one.client.get("/healthz")
        problem(answer, 503)
        assert answer.headers["retry-after"] == "1"


def test_rates():
    with served(stranger_rate=2.0, rate=5.0) as one:
        answers = [one.client.get("/healthz") for _ in range(40)]
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
    """Whatever stands at any key of a request is refused, or makes sense: nothing is a fault of the service."""
    base = {"name": "fuzz", **FUNNEL}
    keys = ["name", "graph", "format", "target", "latent", "controllable", "bias", "context", "binarise", "budget"]
    keys += ["structure_only", "policy", "horizon", "seed", "lease", "links", "continuous", "effects", "hide", "levers"]
    keys += ["control", "stop_within", "history", "if_exists", "costs", "total_cost", "require", "forbid", "exclusive"]
    keys += ["smaller", "always_set"]
    for key in keys:
        for value in HOSTILE:
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
    real = house.app.state.house.experiment(house.spring)

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
        for lines in (b"X: " + b"y" * 40_000, (b"X: " + b"y" * 1000 + b"\r\n") * 40):
            assert raw(one, first + lines + b"\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert raw(one, b"GET /" + b"y" * 40_000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400 ")
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
