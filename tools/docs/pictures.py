"""Make the pictures of the README and the first page: a regret figure, and screenshots of an experiment's page.

`make pictures` writes them into docs/pictures/, which is kept in the repository: GitHub and PyPI show them. It needs
chromium, and takes a minute. Seeds are fixed, so the pictures change only when dobandit does.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import sync_playwright

import dobandit as dob

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LOGIN = "log in once with: "
ROUNDS = 3000  # of the demo, before the screenshot
WIDTH, HEIGHT = 920, 802


def draw_regret() -> None:
    """What three policies lose on the paper's G5, by the figure that every study has, for light and dark screens."""
    policies = [dob.CausalUCB(), dob.BLMLR(radius_scale=0.1), dob.UCB()]
    result = dob.simulate(dob.paper.G5, policies, rounds=5000, replications=100, seed=0)
    result.chart().save(FOLDER / "regret.svg")
    result.chart().save(FOLDER / "regret-dark.svg", dark=True)


def take_screenshots() -> None:
    """The page of the demo's experiment, for light and dark screens."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        sys.exit(f"screenshots need a browser, but none of {', '.join(BROWSERS)} is installed. Install chromium.")
    with demo() as login, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        page = context.new_page()
        page.goto(login)
        page.goto(urljoin(login, "/experiments/1"))
        page.wait_for_load_state("networkidle")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=FOLDER / f"experiment-{scheme}.png")
        browser.close()


@contextmanager
def demo() -> Iterator[str]:
    """Run `dobandit demo` without further rounds; yields its login link."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "dobandit", "demo", "--port", port, "--begin-with", str(ROUNDS)]
    server = subprocess.Popen([*command, "--rounds-per-second", "0"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        for line in server.stdout:
            if line.startswith(LOGIN):
                yield line.removeprefix(LOGIN).strip()
                break
        else:
            sys.exit("the demo ended before it could be reached.")
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    draw_regret()
    take_screenshots()
    for path in sorted(FOLDER.iterdir()):
        print(f"docs/pictures/{path.name}: {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
