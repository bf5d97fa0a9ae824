"""The pages in a real browser: desktop and phone, light and dark, on the server that `dobandit demo` starts.

Debian's chromium, by Playwright. Where there is no browser they are skipped; DOBANDIT_REQUIRE_BROWSER=1 makes its
absence a failure.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.parse
from contextlib import contextmanager
from pathlib import Path

import pytest

import dobandit as dob
from dobandit.report.study_report import study_page
from dobandit.service.pages.experiment_page import snapshot_of
from dobandit.storage import MemoryStorage
from helpers.page_faults import FAULTS, decent
from helpers.worlds import THOROUGH

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MODES = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
PAPER = 690  # what margins leave of the width of A4
PAGES = (
    *("/", "/experiments/1", "/experiments/1/trials", "/experiments/1/trials/30", "/new", "/experiments/1/today"),
    *("/login", "/api/v1/docs"),
)
PATIENCE = 20_000  # milliseconds
expect.set_options(timeout=PATIENCE)  # what a click leads to is waited for, never looked at while it loads


def browser_path():
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None and os.environ.get("DOBANDIT_REQUIRE_BROWSER"):
        pytest.fail("the tests of pages need a browser here, but there is none. Install chromium.")
    if found is None:
        pytest.skip("no browser: install chromium to run the tests of pages in a real one", allow_module_level=True)
    return found


@pytest.fixture(scope="module")
def shop():
    """`dobandit demo` as it starts, and where its database will be."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = Path(tempfile.mkdtemp())
    command = [sys.executable, "-m", "dobandit", "demo", "--port", str(port), "--rounds-per-second", "0"]
    server = subprocess.Popen(
        [*command, "--begin-with", "40"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(home), "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield server, home
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def browser():
    path = browser_path()
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def demo(shop, browser):
    """The demo's login link, once it is there, while a browser was opened; at the end it is stopped as a person would,
    with Ctrl+C."""
    server, home = shop
    said = []
    for line in server.stdout:
        said.append(line)
        if "log in once with" in line:
            break
    assert any("log in once with" in line for line in said), "".join(said)
    yield said[-1].split()[-1]
    assert list(home.glob("dobandit-demo-*"))
    server.send_signal(signal.SIGINT)
    rest = server.communicate(timeout=30)[0]
    assert server.returncode == 0, rest
    assert "the shop is closed" in rest
    assert "Traceback" not in rest
    assert not list(home.glob("dobandit-demo-*"))


@pytest.fixture(scope="module")
def session(demo, browser):
    """Where the service is, and the tab of somebody who has logged in; it notes what goes wrong and who is asked."""
    parts = urllib.parse.urlsplit(demo)
    address = f"{parts.scheme}://{parts.netloc}"
    page = noting(opened_in(browser, base_url=address))
    page.goto(demo, timeout=60_000)
    expect(page.get_by_role("heading", name="Experiments")).to_be_visible()
    assert all(cookie["httpOnly"] and cookie["sameSite"] == "Strict" for cookie in page.context.cookies())
    yield address, page
    page.context.close()


def opened_in(browser, **settings):
    """A window of somebody who wants no motion: pages scroll at once, and clicks need not wait until they stand."""
    return browser.new_context(reduced_motion="reduce", **settings)


def noting(context):
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.trouble, page.asked = [], []
    page.on("console", lambda said: page.trouble.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    return page


def looked_at(page, width, scheme, media="screen"):
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(media=media, color_scheme=scheme)


@contextmanager
def visiting(session, width, scheme, page=None, refused=0):
    """The tab in one of the modes, in which nothing went wrong and nobody else was asked for anything."""
    address, logged_in = session
    page = page or logged_in
    page.goto("about:blank")  # what the test before left under way is over
    page.trouble.clear(), page.asked.clear()
    looked_at(page, width, scheme)
    yield page
    told = [line for line in page.trouble if "422" in line]  # a form that is refused is a page like others
    assert len(told) == refused
    assert page.trouble == told
    assert [url for url in page.asked if not url.startswith((address, "data:", "about:"))] == []


def decent_on_paper(page, scheme="dark"):
    looked_at(page, PAPER, scheme, "print")
    decent(page, FAULTS)
    expect(page.locator("header.bar")).to_be_hidden()


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_decent_in_every_mode(session, path):
    """No script or server asks how wide a window is: one visit does, and `make thorough` pays one for each mode."""
    with visiting(session, 1280, "light") as page:
        page.goto(path)
        for width, scheme in (*MODES, (820, "light")):
            looked_at(page, width, scheme)
            page.reload() if THOROUGH > 1 else None
            decent(page)
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
            assert dark == (scheme == "dark")


def test_the_whole_graph_is_in_sight_in_every_mode(session):
    with visiting(session, 1280, "light") as page:
        page.goto("/experiments/1")
        for width, scheme in MODES:
            looked_at(page, width, scheme)
            assert page.locator("svg.graph:visible").first.bounding_box()["width"] <= width
            target = page.locator("svg.graph:visible g.box.target").first.bounding_box()
            assert target["x"] >= 0
            assert target["x"] + target["width"] <= width  # it is not cut off


def test_pages_on_paper(session):
    with visiting(session, PAPER, "dark") as page:
        for path in ("/", "/experiments/1", "/experiments/1/trials/30", "/experiments/1/trials"):
            page.goto(path)
            decent_on_paper(page)
            assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper')") == "#ffffff"
            if path.endswith("/30"):
                assert page.locator("svg.chart:visible rect.bar").count() > 2
        expect(page.get_by_role("columnheader", name="predicted")).to_be_visible()  # a table, and no list of blocks


def test_creating_an_experiment(session):
    with visiting(session, 1280, "light") as page:
        page.goto("/new")
        page.get_by_label("Arrows, one a line").fill("mail -> visit\nvisit -> buy\nvisit -> -> x\n")
        page.get_by_text("line 3, column 10").wait_for()
        page.get_by_label("Arrows, one a line").fill("mail -> visit\nvisit -> buy\nletter -> buy\nrain -> visit\n")
        page.get_by_text("5 variables, 4 arrows").wait_for()
        page.get_by_label("Cost of letter").fill("2")
        page.get_by_label("Part of buy").select_option("the target")
        page.get_by_label("Part of rain").select_option("known before acting")
        page.locator("svg.graph:visible g.box.context").wait_for()
        expect(page.get_by_label("Cost of letter")).to_have_value("2")
        expect(page.get_by_label("Cost of rain")).to_be_hidden()  # it cannot be set
        page.get_by_label("Part of visit").select_option("only seen")
        page.get_by_label("Name").fill("made <b>in</b> a browser")
        page.get_by_label("Total cost").fill("2")
        decent(page)
        page.get_by_role("button", name="Begin the experiment").click()
        page.get_by_role("heading", name=re.compile("Nothing was told yet")).wait_for()
        expect(page.get_by_role("link", name="made <b>in</b> a browser").first).to_be_visible()


def test_long_and_strange_names_stick_out_nowhere(session):
    names = ["w" * 100, "<b>bold</b>", "ümläut 因果", "it's & that"]
    with visiting(session, 390, "dark") as page:
        page.goto("/new")
        arrows = "".join(f'"{name}" -> "{names[0]}y"\n' for name in names)
        page.get_by_label("Arrows, one a line").fill(f'target: "{names[0]}y"\n{arrows}')
        page.get_by_text("5 variables, 4 arrows").wait_for()
        decent(page)
        page.get_by_label("Name").fill("n" * 150)
        page.get_by_role("button", name="Begin the experiment").click()
        page.get_by_role("heading", name=re.compile("Nothing was told yet")).wait_for()
        decent(page)
        here = page.url
        page.goto(f"{here}/today")
        page.get_by_role("button", name="Ask what to set").click()
        page.get_by_role("button", name="Check it").wait_for()
        decent(page)
        for group in page.get_by_role("group").all():
            if group.get_by_role("radio").count():
                group.get_by_role("radio", name="1", exact=True).check()
        page.get_by_role("button", name="Check it").click()
        page.get_by_role("button", name="Tell it").click()
        for part in ("", "/trials", "/trials/0"):
            page.goto(f"{here}{part}")
            for width in (390, 1280):
                looked_at(page, width, "dark")
                decent(page)
        page.goto("/")
        decent(page)


def test_todays_round_on_a_phone(session):
    with visiting(session, 390, "dark") as page:
        page.goto("/experiments/1/today")
        page.get_by_role("button", name="Ask what to set").click()
        page.get_by_role("heading", name="Set ").wait_for()
        number = re.search(r"trial (\d+)", page.get_by_role("heading", name="Set ").inner_text())[1]
        decent(page)
        groups = page.get_by_role("group")
        for i in range(groups.count()):
            group = groups.nth(i)
            if group.get_by_role("radio").count():
                group.get_by_role("radio", name="not seen" if i == 0 else "1", exact=True).check()
        page.get_by_role("button", name="Check it").click()
        page.get_by_text("there is no undo").wait_for()
        decent(page)
        page.get_by_role("button", name="Tell it").click()
        page.get_by_role("status").get_by_text(f"Trial {number} is told").wait_for()
        decent(page)


def test_why_a_trial_was_chosen(session):
    with visiting(session, 1280, "dark") as page:
        page.goto("/experiments/1")
        page.get_by_role("link", name="39", exact=True).click()
        page.get_by_role("heading", name=re.compile(r"^Trial 39: set")).wait_for()
        expect(page.get_by_role("img", name=re.compile("estimate of purchase")).first).to_be_visible()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"  # the keyboard begins at the top
        page.locator("svg.graph:visible a").first.click()
        page.wait_for_url(re.compile(r"/experiments/1#effect-"))
        decent(page)


def test_replaying_the_log(session):
    with visiting(session, 390, "light") as page:
        page.goto("/experiments/1")
        slider = page.get_by_role("slider", name="As it was known after")
        last = int(slider.input_value())
        slider.fill("5")
        page.get_by_text("After 5 closed trials").wait_for()
        slider.press("Home")
        page.get_by_text("nothing was known").wait_for()
        decent(page)
        slider.fill(str(last - 5))  # it goes on from where it stands; from the beginning it takes six seconds
        page.get_by_role("button", name="Replay").click()
        page.get_by_text(f"After {last} closed trials").wait_for()


def test_without_scripts_the_same_can_be_done(browser, session):
    address, logged_in = session
    context = opened_in(browser, java_script_enabled=False, base_url=address)
    context.add_cookies(logged_in.context.cookies())
    with visiting(session, 390, "light", noting(context), refused=1) as page:
        page.goto("/experiments/1?round=7#graph")
        expect(page.get_by_text("After 7 closed trials")).to_be_visible()
        expect(page.get_by_role("button", name="Show", exact=True)).to_be_visible()
        page.goto("/new")
        page.get_by_label("Arrows, one a line").fill("a -> b\nb -> c\n")
        page.get_by_role("button", name="Draw it").click()
        expect(page.get_by_text("3 variables, 2 arrows")).to_be_visible()
        page.get_by_label("Part of c").select_option("the target")
        page.get_by_label("Part of b").select_option("only seen")
        expect(page.get_by_label("Cost of b")).to_be_hidden()
        page.get_by_label("Cost of a").fill("-2")
        page.get_by_label("Link of b").select_option("logistic")
        page.get_by_label("Total cost").fill("3")
        page.get_by_label("Name").fill("without scripts")
        page.get_by_role("button", name="Begin the experiment").click()
        expect(page.get_by_label("Cost of a")).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_text("a cost is a number")).to_be_visible()
        expect(page.get_by_label("Link of b")).to_have_value("logistic")
        page.get_by_label("Cost of a").fill("2")
        page.get_by_role("button", name="Begin the experiment").click()
        expect(page.get_by_role("heading", name=re.compile("Nothing was told yet"))).to_be_visible()
        page.goto("/experiments/1/today")
        page.get_by_role("button", name="Ask what to set").click()
        page.get_by_text("It could not be carried out").click()
        page.get_by_role("button", name="Mark as failed").click()
        expect(page.get_by_text("is marked as failed")).to_be_visible()
    context.close()


def test_the_badge_of_the_target_is_no_button(session):
    """Where numbers are asked for, what stands in a label is no choice."""
    with visiting(session, 390, "light") as page:
        page.goto("/new")
        page.get_by_label("Name").fill("numbers")
        page.get_by_label("Values of variables").select_option("numbers from 0 to 1")
        page.locator("select[name=policy]").select_option("ucb")
        page.get_by_role("button", name="Begin the experiment").click()
        page.get_by_role("link", name="Today’s round").first.click()
        page.get_by_role("button", name="Ask what to set").click()
        badge = page.locator(".question .badge")
        expect(badge).to_have_text("target")
        assert badge.bounding_box()["height"] < 30
        assert badge.bounding_box()["width"] < 100
        decent(page)


@pytest.fixture(scope="module")
def offline(browser):
    """A tab that reaches nobody."""
    context = opened_in(browser, offline=True)
    yield noting(context)
    context.close()


def test_a_snapshot_opens_without_the_service(session, offline, tmp_path):
    with visiting(session, 390, "dark") as page:
        page.goto("/experiments/1")
        with page.expect_download() as download:
            page.get_by_role("link", name="Snapshot").click()
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
    with visiting((file.as_uri(), offline), 390, "dark") as page:
        page.goto(file.as_uri())
        decent(page)
        expect(page.get_by_role("heading", name="What was tried when")).to_be_visible()


def test_a_snapshot_of_contexts_with_long_names_in_every_mode_and_on_paper(offline, tmp_path):
    names = ["w" * 100, "on a phone", "a name of several words that goes on", "ümläut 因果", "evening"]
    edges = [(name, "y" * 60) for name in ("c" * 80, "d", *names)]
    graph = dob.CausalGraph(edges, "y" * 60, controllable=["c" * 80, "d"], context=names)
    experiment = dob.create_experiment("long", graph, 2, storage=MemoryStorage(), seed=0, stop_within=0.1)
    for k in range(20):
        trial = experiment.ask(context={name: k >> i & 1 for i, name in enumerate(names)})
        experiment.tell(trial, {"c" * 80: 0, "d": 0, **trial.do, "y" * 60: k % 2})
    file = tmp_path / "long.html"
    file.write_text(snapshot_of(experiment, experiment.storage.find("long"), 0.0))
    with visiting((file.as_uri(), offline), 1280, "light") as page:
        page.goto(file.as_uri())
        for width, scheme in (*MODES, (820, "light")):
            looked_at(page, width, scheme)
            decent(page)
        looked_at(page, PAPER, "dark", "print")
        decent(page, FAULTS)
        expect(page.get_by_role("columnheader", name="may I stop?")).to_be_visible()


def test_a_report_of_a_study_in_every_mode_and_on_paper(offline, tmp_path):
    result = dob.simulate(dob.paper.G4, ["ucb", "random", "ucb:scale=0.3"], rounds=60, replications=4, seed=0, budget=2)
    file = tmp_path / "report.html"
    file.write_text(study_page(result))
    with visiting((file.as_uri(), offline), 1280, "light") as page:
        page.goto(file.as_uri())
        for width, scheme in MODES:
            looked_at(page, width, scheme)
            decent(page)
            decent_on_paper(page, scheme)
            expect(page.get_by_role("columnheader", name="Regret")).to_be_visible()
