"""The documentation site: it builds without a warning, its reference is complete, and nothing is fetched."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import cfner
from commands import COMMANDS
from counts import times

pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")
pytest.importorskip("latex2mathml", reason="the extra 'docs' is not installed")

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` builds it: a broken link or a page that is not in the navigation ends it."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("built") / "site"
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


class Page(HTMLParser):
    """The ids of a page, its plain text, and the addresses that a browser would fetch to show it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.text = ""
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.add(given.get("id", ""))
        if "src" in given:
            self.fetched.append(given["src"])
        if tag == "link" and given.get("rel") not in {"prev", "next", "canonical"}:
            self.fetched.append(given.get("href", ""))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_every_command_has_its_options(site: Path) -> None:
    html = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    sections = dict(part.split('"', 1) for part in html.split('<h3 id="')[1:])
    for path, flags in COMMANDS.items():
        about = sections[f"cfner-{path.replace(' ', '-')}"]
        wanted = {flag for flag in flags if flag.startswith("--")} - {"--help"}
        assert {flag for flag in wanted if not re.search(rf"(?<![\w-]){flag}(?![\w-])", about)} == set(), path


def test_every_public_name_has_its_docstring(site: Path) -> None:
    page = Page(site / "reference" / "python.html")
    assert {f"cfner.{name}" for name in cfner.__all__} <= page.ids
    shown = _letters(page.text)
    for name in cfner.__all__:
        if callable(public := getattr(cfner, name)):
            assert _letters((public.__doc__ or "?").split("\n\n")[0]) in shown, name


def _letters(text: str) -> str:
    """Without marks that Markdown takes for its own."""
    return " ".join(re.findall(r"\w+", text.replace("_", "")))


def test_formulas_are_drawn_and_dollar_signs_in_code_stay(site: Path) -> None:
    concepts, results = (Page(site / name) for name in ("concepts.html", "results.html"))
    assert "$" not in concepts.text.replace("$ cfner", "") and "<math" in (site / "concepts.html").read_text()
    assert "yardstick $CFNER_DATA --score-on dev" in results.text
    assert not [path for path in site.rglob("*.html") if "formulaheld" in path.read_text()]


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = [path for path in site.rglob("*.html") if path.name != "404.html"]
    assert len(pages) > 40
    fetched = {address for path in pages for address in Page(path).fetched}
    assert {
        address for address in fetched if re.match(r"\w+:|//", address) and address[:5] != "data:"
    } == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere_without_the_site(document: Path) -> None:
    """On GitHub, where most people read first."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [unquote(target) for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)]
    assert [target for target in targets if not (document.parent / target).exists()] == []


class Browser:
    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def until(self, holds: Callable[[], Any]) -> Any:
        end = time.monotonic() + 15
        while not (found := holds()):
            assert time.monotonic() < end, self.driver.get_log("browser")
            time.sleep(0.02)
        return found

    def requests(self) -> set[str]:
        """Addresses that the browser asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return set(sent)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium with chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument("--window-size=1280,900")  # narrower, the search is behind a button
    service = webdriver.ChromeService(DRIVER, env={**os.environ, "NO_PROXY": "*"})
    driver = webdriver.Chrome(options=options, service=service)
    yield Browser(driver)
    driver.quit()


def test_from_page_to_page_next_leads_to_all(site: Path) -> None:
    """ "Next" at the foot of each page, as it is written, until the last."""
    expected = {path for path in site.rglob("*.html") if path.name not in {"404.html", "report-page.html"}}
    here, seen = site / "index.html", []
    while here not in seen:
        seen.append(here)
        tag = re.search(r'<a href="([^"]+)" class="md-footer__link md-footer__link--next"', here.read_text())
        here = here if tag is None else (here.parent / unquote(tag[1])).resolve()
    assert sorted(seen) == sorted(expected)


def test_clicking_on_opens_pages_and_fetches_nothing(site: Path, browser: Browser) -> None:
    """From a folder, without a server. All pages in `make torture`."""
    browser.driver.get((site / "index.html").as_uri())
    for _ in range(times(1000, quick=20, short=6)):
        here = browser.driver.current_url
        assert browser.until(lambda: browser.all("article h1"))[0].text
        following = browser.all("a.md-footer__link--next")
        if not following:
            break
        browser.driver.execute_script("arguments[0].click()", following[0])
        browser.until(lambda last=here: browser.driver.current_url != last)
    assert {url for url in browser.requests() if not url.startswith(("file:", "data:"))} == set()
    assert [entry for entry in browser.driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_search_finds_the_forgetting_guard(site: Path, browser: Browser) -> None:
    browser.driver.get((site / "index.html").as_uri())
    box = browser.until(lambda: browser.all(".md-search__input"))[0]
    browser.until(box.is_displayed)
    box.click()
    box.send_keys("forgetting guard")
    found = browser.until(lambda: browser.all(".md-search-result__link"))
    assert "reference/guard.html" in found[0].get_attribute("href")
    browser.driver.get(found[0].get_attribute("href"))
    assert "forgetting guard" in browser.all("article h1")[0].text
    assert {url for url in browser.requests() if not url.startswith(("file:", "data:"))} == set()
