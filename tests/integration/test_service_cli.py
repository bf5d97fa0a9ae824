"""The commands serve, token and storage audit."""

import json
import os
import re
import socket
import subprocess
import sys
import time

import pytest

import dobandit as dob
from dobandit.cli.main import main
from dobandit.storage import open_storage
from dobandit.storage.access import token_of
from helpers.experiments import TWINS

pytestmark = pytest.mark.processes


@pytest.fixture
def url(tmp_path):
    url = f"sqlite:///{tmp_path}/spring.db"
    dob.create_experiment("spring", TWINS, 1, "random", url).close()
    return url


@pytest.fixture
def run(capsys):
    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


def test_tokens_are_made_listed_and_revoked(run, url):
    code, out, err = run("token", "create", "--storage", url, "--scope", "work", "--experiment", "spring")
    assert code == 0
    text = out.strip()
    assert re.fullmatch(r"dob_1_[A-Za-z0-9_-]{43}", text)
    assert "not shown again" in err
    storage = open_storage(url)
    spring = storage.find("spring").id
    found = token_of(storage, text, 1e10)
    assert (found.scope, found.experiment, found.expires_at) == ("work", spring, None)
    words = ["token", "create", "--storage", url, "--scope", "read", "--expires", "30d", "--name", "me", "--json"]
    code, out, _ = run(*words)
    said = json.loads(out)
    assert (code, said["id"], said["name"], said["state"]) == (0, 2, "me", "valid")
    second = token_of(storage, said["token"], 0.0)
    assert second.expires_at - second.created_at == 30 * 86400
    code, out, _ = run("token", "list", "--storage", url, "--json")
    listed = json.loads(out)
    assert [(one["id"], one["scope"], one["experiment"]) for one in listed] == [(1, "work", spring), (2, "read", None)]
    assert text.split("_", 2)[2] not in out
    assert "spring" in run("token", "list", "--storage", url)[1]
    assert run("token", "revoke", "1", "--storage", url)[0] == 0
    assert token_of(storage, text, 1.0) is None
    assert json.loads(run("token", "list", "--storage", url, "--json")[1])[0]["state"] == "revoked"
    code, out, _ = run("storage", "audit", "--storage", url, "--json")
    assert [line["what"] for line in json.loads(out)] == ["create token", "create token", "revoke token"]
    assert len(json.loads(run("storage", "audit", "--storage", url, "--experiment", "spring", "--json")[1])) == 2
    assert "create token" in run("storage", "audit", "--storage", url)[1]
    storage.close()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["token", "create", "--scope", "all"], "read"),
        (["token", "create"], "--scope"),
        (["token", "create", "--scope", "read", "--experiment", "sprin"], "Did you mean 'spring'"),
        (
            ["token", "create", "--scope", "read", "--expires", "soon"],
            "the time that a token is valid reads 90, 90s, 30m",
        ),
        (["token", "create", "--scope", "read", "--experiment", "autumn"], "Create it first"),
        (["token", "create", "--scope", "read", "--name", " "], "name"),
        (["token", "revoke", "7"], "no token 7"),
        (["token", "revoke", "9223372036854775808"], "not in the range"),
        (["storage", "audit", "--after", "9223372036854775808"], "not in the range"),
        (["storage", "audit", "--experiment", "x"], "no experiment"),
        (["serve", "--host", "0.0.0.0"], "at least one valid token"),
        (["serve", "--host", "192.0.2.1", "--port", "9"], "at least one valid token"),
        (["serve", "--port", "0"], "port"),
        (["serve", "--allowed-host", "https://here.example"], "without http://"),
        (["serve", "--allowed-host", "here.example:8765"], "without a port"),
        (["serve", "--allowed-host", "here example"], "experiments.example.org"),
    ],
)
def test_refusals(run, url, words, says):
    code, _, err = run(*words, "--storage", url)
    assert code == 2
    assert says in err
    assert "Traceback" not in err


def test_other_addresses_need_a_token_that_is_valid_and_a_name(run, url):
    run("token", "create", "--storage", url, "--scope", "read")
    code, _, err = run("serve", "--storage", url, "--host", "0.0.0.0")
    assert (code, "--allowed-host" in err) == (2, True)
    run("token", "revoke", "1", "--storage", url)
    code, _, err = run("serve", "--storage", url, "--host", "0.0.0.0", "--allowed-host", "here.example")
    assert (code, "at least one valid token" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "link"),
    [([], True), (["--allowed-host", "LocalHost"], True), (["--allowed-host", "here.example"], False)],
)
def test_a_login_link_is_printed_only_where_no_other_name_leads_to_the_service(url, words, link):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dobandit", "serve", "--storage", url, "--port", str(port), *words]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert "serving" in service.stdout.readline()
        said = service.stdout.readline()
        assert ("/login?code=" in said) == link
        assert link or "dobandit token create" in said
    finally:
        service.kill()
        service.wait(30)
        service.stdout.close()


def test_a_demo_that_is_ended_throws_its_database_away(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "dobandit", "demo", "--begin-with", "0", "--rounds-per-second", "0"]
    demo = subprocess.Popen(
        [*words, "--port", str(port)], env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    )
    try:
        said = [demo.stdout.readline() for _ in range(3)]
        assert "/login?code=" in said[-1]
        assert [folder.name[:13] for folder in tmp_path.iterdir()] == ["dobandit-demo"]
        _wait_until_it_answers(port)
        demo.terminate()
        assert demo.wait(30) == 0
    finally:
        demo.kill()
        demo.stdout.close()
    assert list(tmp_path.iterdir()) == []


def _wait_until_it_answers(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the demo does not listen")
