"""The page in a real browser: type, slide, compare, link, dark, keyboard, keys; markup stays text."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cfner.evaluation.scores import Counts, Scores
from cfner.practice.history.prune import prune
from cfner.serving.server import in_background
from cfner.serving.settings import ServeSettings
from cfner.store.model_folder import ModelFolder
from cfner.store.series import add_scores
from cfner.stream.sentence_set import SentenceSet
from serving_models import TEXTS, add_step, make_model

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no chromium with chromedriver on this machine"
)

MARKUP = "<img src=x onerror=alert(1)>"
TYPES = ["person", "city", f"<b>{MARKUP}</b>", "__proto__"]
KEY = "a-key-that-is-long-enough"
TEXT = TEXTS[0]


@pytest.fixture(scope="module")
def model(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tiny_encoder, tmp_path_factory.mktemp("shown") / "model", TYPES, unscored=2)


@pytest.fixture(scope="module")
def url(model: Path) -> Iterator[str]:
    with in_background(model) as address:
        yield address


class Page:
    """A browser window on the page."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get("about:blank")  # else a changed fragment alone would not load the page anew
        self.driver.get(address)
        self.until(lambda: self.script("return document.documentElement.dataset.ready") == "true")
        self.settle()

    def script(self, code: str, *given: Any) -> Any:
        return self.driver.execute_script(code, *given)

    def __getitem__(self, id_: str) -> Any:
        return self.driver.find_element("id", id_)

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def until(self, holds: Callable[[], Any], seconds: float = 15) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, self.driver.get_log("browser")
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until what is typed is also what is shown."""

        def shown() -> bool:
            return bool(
                self.script(
                    "const busy = document.getElementById('answers').getAttribute('aria-busy');"
                    "const copy = document.getElementById('left-text').cloneNode(true);"
                    "copy.querySelectorAll('.label, .sign').forEach((label) => label.remove());"
                    "const text = document.getElementById('text').value;"
                    "return busy === 'false' && (text.trim() === '' || copy.textContent === text ||"
                    " !document.getElementById('trouble').hidden)"
                )
            )

        self.until(shown)

    def type(self, text: str) -> None:
        self.script("document.getElementById('text').value = ''")
        self["text"].send_keys(text)
        self.settle()

    def entities(self, side: str = "left") -> list[tuple[str, str]]:
        """(text, type) of all that is marked, as the browser shows it."""
        return [
            tuple(pair)
            for pair in self.script(
                "return [...document.querySelectorAll(`#${arguments[0]}-text mark`)].map((mark) => {"
                " const copy = mark.cloneNode(true);"
                " copy.querySelectorAll('.score, .sign').forEach((each) => each.remove());"
                " const type = copy.querySelector('.label').textContent;"
                " copy.querySelector('.label').remove(); return [copy.textContent, type] })",
                side,
            )
        ]

    def press(self, id_: str, key: str) -> None:
        from selenium.webdriver.common.keys import Keys

        self[id_].send_keys(getattr(Keys, key))
        self.settle()

    def width(self, pixels: int) -> None:
        size = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def scheme(self, name: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": name}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


@contextmanager
def window() -> Iterator[Any]:
    """A browser without a screen."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(DRIVER, env={**os.environ, "NO_PROXY": "*"})
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with window() as driver:
        yield Page(driver)


@pytest.fixture
def page(browser: Page, url: str) -> Iterator[Page]:
    browser.width(1280)
    browser.scheme("light")
    browser.open(url)
    browser.driver.get_log("browser")
    yield browser
    # nothing was refused by the content policy, and nothing went wrong unseen
    assert browser.driver.get_log("browser") == []


def expected(model: Path, text: str, step: int) -> list[tuple[str, str]]:
    from cfner.serving.pipeline import Pipeline
    from cfner.store.open import open_model

    found = Pipeline(open_model(model, step)).tag([text])[0]
    return [
        (entity.text, entity.type if len(entity.type) <= 32 else entity.type[:32] + "…") for entity in found
    ]


def test_typing_marks_entities_with_type_and_score(page: Page, model: Path) -> None:
    page.type("x")
    page.press("text", "BACKSPACE")
    page.until(lambda: page["left-text"].text == "No text yet.")
    page.type(TEXT)
    assert page.entities() == expected(model, TEXT, 4) != []
    assert all(0 < float(score.text) <= 1 for score in page.all("#left-text .score"))
    assert "entities found by step 4" in page["said"].text
    assert len(page.all("#legend li")) == len(TYPES)


def test_a_late_answer_is_not_drawn_over_what_was_typed_meanwhile(page: Page, model: Path) -> None:
    page.type(TEXT)
    page.script(
        """
        const [first, second] = arguments;
        const text = document.getElementById('text');
        const left = document.getElementById('left-text');
        window.ghosts = 0;
        new MutationObserver(() => { window.ghosts += left.textContent.includes('ghost'); })
          .observe(left, { childList: true, subtree: true });
        const { fetch } = window;
        let answer;
        window.fetch = () => new Promise((done) => (answer = done));
        text.value = first;
        text.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true })); // asks at once
        text.value = second;
        text.dispatchEvent(new Event('input')); // asks in a moment
        window.fetch = fetch;
        const entities = [{ type: 'ghost', text: first, start: 0, end: 3, first: 0, last: 0, score: 0.5 }];
        answer(Response.json({ results: [{ entities }] }));
        """,
        TEXTS[1],
        TEXTS[2],
    )
    page.settle()
    assert page.entities() == expected(model, TEXTS[2], 4)
    assert page.script("return window.ghosts") == 0


def test_it_opens_with_the_example_that_shows_most(page: Page, model: Path, url: str) -> None:
    text = page["text"].get_attribute("value")
    assert page.entities() == expected(model, text, 4) != []
    examples = page.script("return import('/static/examples.js').then((it) => it.EXAMPLES)")
    assert len(expected(model, text, 4)) == max(len(expected(model, each, 4)) for each in examples)
    page.until(lambda: page.driver.current_url == url)  # an example that nobody chose is not in the link
    seen = {text}
    for _ in examples[1:]:
        page["example"].click()
        page.settle()
        seen.add(page["text"].get_attribute("value"))
    assert seen == set(examples)


def by_line(page: Page, side: str = "left") -> list[list[tuple[str, str]]]:
    """(text, type) of what is marked in each of several texts."""
    found: list[list[tuple[str, str]]] = page.script(
        "return [...document.querySelectorAll(`#${arguments[0]}-text .item`)].map((item) =>"
        " [...item.querySelectorAll('mark')].map((mark) => { const copy = mark.cloneNode(true);"
        " copy.querySelectorAll('.score, .sign').forEach((each) => each.remove());"
        " const type = copy.querySelector('.label'); type.remove();"
        " return [copy.textContent, type.textContent] }))",
        side,
    )
    return [[(text, type_) for text, type_ in item] for item in found]


def test_several_texts_at_once(page: Page, model: Path) -> None:
    lines = [TEXTS[0], TEXTS[1], TEXTS[2]] * 30
    page.script("document.getElementById('text').value = arguments[0]", "\n\n".join(lines))
    page["text"].send_keys("\n")
    page["lines"].click()
    page.until(lambda: "in 90 texts by step 4." in page["said"].text)
    assert by_line(page) == [expected(model, line, 4) for line in lines]
    page.until(lambda: "lines=1" in page.driver.current_url)
    page.all("label[for=mode-two]")[0].click()
    page.until(lambda: "step 3 and step 4" in page["said"].text)
    assert by_line(page, "left") == [expected(model, line, 3) for line in lines]
    assert by_line(page, "right") == [expected(model, line, 4) for line in lines]
    assert " · text 90" in page["changes"].text
    page.width(360)
    assert page.script("return document.documentElement.scrollWidth") <= 360


DROP = """
const [files] = arguments;
const data = new DataTransfer();
for (const [name, content] of files) {
  const bytes = typeof content === 'string' ? content : new Uint8Array(content);
  data.items.add(new File([bytes], name));
}
document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
"""


def test_files_are_dropped_onto_it(page: Page, model: Path, tmp_path: Path) -> None:
    conll = "-DOCSTART- O\n\nada B-PER\nsaw O\nlisbon B-LOC\n\nemmy B-PER\n"
    page.script(
        DROP,
        [
            ["a.txt", f"{TEXTS[0]}\r\n\r\n{TEXTS[1]}\r\n"],
            ["b.jsonl", '{"text": "ada\\nin lisbon"}\n{"tokens": ["emmy", "saw"]}\n'],
            ["c.json", '["kurt"]'],
        ],
    )
    page.until(lambda: page["dropped"].text == "5 texts from a.txt, b.jsonl, c.json")
    page.until(lambda: "in 5 texts" in page["said"].text)
    texts = [TEXTS[0], TEXTS[1], "ada in lisbon", "emmy saw", "kurt"]
    assert by_line(page) == [expected(model, text, 4) for text in texts]
    page.script(DROP, [["d.conll", conll]])
    page.until(lambda: page["text"].get_attribute("value") == "ada saw lisbon\nemmy")
    for name, content, told in (
        ("x.pdf", [37, 80, 0, 200], "x.pdf is not a text file"),
        ("y.jsonl", '{"text": "a"}\n{', "y.jsonl, line 2 is not JSON"),
        ("z.json", '[{"body": "a"}]', 'z.json, item 1 has no "text"'),
        ("big.txt", "a" * 2_000_001, "up to 2 MB"),
    ):
        page.script(DROP, [[name, content]])
        page.until(lambda told=told: told in page["trouble"].text)
        assert page["text"].get_attribute("value") == "ada saw lisbon\nemmy"  # nothing was taken from it
    (tmp_path / "one.txt").write_text(TEXT)
    page["files"].send_keys(str(tmp_path / "one.txt"))
    page.until(lambda: page["dropped"].text == "1 text from one.txt")
    page.settle()
    assert page.entities() == expected(model, TEXT, 4)


def test_the_threshold_hides_lower_scores_and_is_in_the_link(page: Page, model: Path, url: str) -> None:
    page.type(TEXT)
    scores = [float(each.text) for each in page.all("#left-text .score")]
    least = sorted(scores)[len(scores) // 2]
    page.script(
        "const slider = document.getElementById('least'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input'))",
        least,
    )
    shown = [float(each.text) for each in page.all("#left-text .score")]
    assert 0 < len(shown) < len(scores) and min(shown) >= least
    assert page["hidden"].text == f"{len(scores) - len(shown)} hidden"
    page.until(lambda: f"least={least:g}" in page.driver.current_url)
    page.open(page.driver.current_url)
    assert [float(each.text) for each in page.all("#left-text .score")] == shown
    page.press("least", "HOME")
    assert len(page.all("#left-text mark")) == len(scores) and page["hidden"].text == ""


def test_what_is_shown_is_copied_as_json(page: Page, model: Path, url: str) -> None:
    def copied(allowed: bool = True) -> Any:
        page.script(
            "window.copied = null; navigator.clipboard.writeText = async (text) => {"
            " if (!arguments[0]) throw new Error('no'); window.copied = text }",
            allowed,
        )
        page["copy"].click()
        if allowed:
            page.until(lambda: page.script("return window.copied") is not None)
            return json.loads(page.script("return window.copied"))
        page.until(lambda: page["json-dialog"].get_attribute("open") is not None)
        text = page["json-text"].get_attribute("value")
        page.all("#json-dialog button")[0].click()
        return json.loads(text)

    page.type(TEXT)
    told = httpx.post(f"{url}predict", json={"text": TEXT, "step": 4}, verify=False).json()
    one = copied()
    assert one == {"model": "model", **told, "results": [{"text": TEXT, **told["results"][0]}]}
    assert copied(allowed=False) == one
    page.all("label[for=mode-two]")[0].click()
    page.until(lambda: "step 3 and step 4" in page["said"].text)
    two = copied()
    assert [each["step"] for each in two["steps"]] == [3, 4] and two["steps"][1]["results"] == one["results"]


def test_every_figure_says_what_it_is_and_what_it_was_measured_on(page: Page) -> None:
    cells = page.all("#heat-table tbody td")
    assert all(cell.get_attribute("title") for cell in cells[:-1])
    page.script("arguments[0].click()", cells[0])
    told = page["figure"].text
    assert told.startswith("person after step 1: F1 90.0, from precision 90.0")
    assert "of the 100 mentions" in told and "Measured on held-out.conll, 300 sentences" in told
    page.script("arguments[0].click()", cells[4])
    assert page["figure"].text.startswith("person: its last F1 is 33.0 points below its best earlier one.")
    assert "the probability that the model gives this type" in page.all("mark")[0].get_attribute("title")


def test_the_api_is_described_without_anything_from_elsewhere(page: Page, url: str) -> None:
    page["api"].click()
    page.until(lambda: page.driver.current_url == f"{url}docs")
    text = page.all("main")[0].text
    for told in ("POST /predict", "results[].entities[].score", "At most 256.", "GET /health", "curl"):
        assert told in text
    loaded = page.script("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert loaded and all(each.startswith(url) for each in loaded)
    assert page.script("return document.scripts.length") == 0
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        assert page.script(CONTRAST) == []
    page.width(360)
    assert page.script("return document.documentElement.scrollWidth") <= 360


def test_sliding_shows_what_each_step_says(page: Page, model: Path) -> None:
    page.type(TEXT)
    for step in (3, 2, 1):
        page.press("slider", "ARROW_LEFT")
        page.until(lambda step=step: f"by step {step}." in page["said"].text)
        assert page.entities() == expected(model, TEXT, step)
        assert f"Step {step} of 4" in page["caption"].text
        assert len(page.all("#legend .unknown")) == 4 - step
        assert page.all("#heat-table button[aria-current=true]")[0].text == str(step)
    page["later"].click()
    page.until(lambda: "by step 2." in page["said"].text)
    page.all("#heat-table thead button")[3].click()
    page.until(lambda: "by step 4." in page["said"].text)
    assert page["later"].get_attribute("disabled") is not None


def test_the_heat_map_shows_the_scores_and_what_has_none(page: Page) -> None:
    rows = page.script(
        "return [...document.querySelectorAll('#heat-table tbody tr')].map((row) =>"
        " [...row.children].map((cell) => cell.textContent))"
    )
    assert rows[0] == ["person", "90", "–", "68", "57", "33.0"]
    assert rows[3] == ["__proto__", "·", "·", "·", "90", ""]
    assert rows[4][0] == "all (micro)"
    assert page["heat-on"].text.startswith("Measured on held-out.conll, 300 sentences")
    assert not page["heat-choice"].is_displayed()
    assert page["heat-missing"].text == "Step 2 has no scores on these sentences."


def test_series_on_other_sentences_are_chosen_and_never_set_beside(
    browser: Page, model: Path, tmp_path: Path
) -> None:
    from selenium.webdriver.support.ui import Select

    copy = Path(shutil.copytree(model, tmp_path / "model"))
    browser.width(1280)
    folder, on = (
        ModelFolder(copy),
        SentenceSet("7" * 64, 50, {"person": 40, "city": 10}, "<b>guard</b>.conll"),
    )
    for name, right in (("0002", 30), ("0004", 29)):
        add_scores(
            folder, on, {folder.step(name).hash: Scores(("person",), {"person": Counts(right, 40, 40)})}
        )
    prune(copy, 3)
    with in_background(copy) as address:
        browser.open(address)

        def rows() -> list[list[str]]:
            found: list[list[str]] = browser.script(
                "return [...document.querySelectorAll('#heat-table tbody tr')].map((row) =>"
                " [...row.querySelectorAll('td')].map((cell) => cell.textContent))"
            )
            return found

        assert rows()[0] == ["90", "–", "68", "57", "33.0"]
        choice = Select(browser["heat-series"])
        assert [option.text[:8] for option in choice.options] == ["held-out", "<b>guard"]
        choice.select_by_index(1)
        assert rows()[0] == ["–", "75", "–", "73", "2.5"]
        assert rows()[1] == ["·", "–", "–", "–", ""] and rows()[4] == ["–", "–", "–", "–", ""]
        assert browser.script("return document.querySelectorAll('#heat-table td.chosen').length") == 5
        told = browser["heat-missing"].text
        assert "Steps 1, 3 have no scores on these sentences." in told
        assert "Figures of other sentences are not comparable with these." in told
        assert "Step 1 cannot be used: the weights were removed to free the disk." in told
        browser.width(360)
        assert browser.script("return document.documentElement.scrollWidth") <= 360


def test_two_steps_side_by_side_with_their_differences(page: Page, model: Path) -> None:
    page.type(TEXT)
    page.all("label[for=mode-two]")[0].click()
    page.until(lambda: "step 3 and step 4" in page["said"].text)
    page.script(
        "const s = document.getElementById('left-step'); s.value = '1'; s.dispatchEvent(new Event('change'))"
    )
    page.until(lambda: "step 1 and step 4" in page["said"].text)
    before, after = expected(model, TEXT, 1), expected(model, TEXT, 4)
    assert (page.entities("left"), page.entities("right")) == (before, after)
    marked = [
        page.script("return document.querySelectorAll(arguments[0]).length", f"#{side}-text mark:is({kinds})")
        for side, kinds in (("left", ".lost, .retyped, .moved"), ("right", ".gained, .retyped, .moved"))
    ]
    changes = page.script(
        "return [...document.querySelectorAll('#changes li')].map((each) => each.className)"
    )
    assert marked[0] == sum(kind != "gained" for kind in changes)
    assert marked[1] == sum(kind != "lost" for kind in changes)
    same = len(before) - marked[0]
    assert same == len(after) - marked[1] == len(set(before) & set(after))
    page["exchange"].click()
    page.until(lambda: "step 4 and step 1" in page["said"].text)
    assert page.entities("left") == after


def test_a_picture_of_it_can_be_taken(page: Page, tmp_path: Path) -> None:
    page.type(TEXT)
    assert page.driver.save_screenshot(str(tmp_path / "page.png"))
    assert (tmp_path / "page.png").stat().st_size > 10_000  # an empty window is smaller


def test_differences_are_a_partition(page: Page) -> None:
    """Each entity of either side is the same on both or in exactly one difference, whatever they are."""
    assert (
        page.script(
            """
            return import('/static/differences.js').then(({ differences }) => {
              let seed = 7;
              const draw = (n) => (seed = (seed * 48271) % 2147483647) % n;
              const side = () => {
                const found = [];
                for (let at = draw(4); at < 20; at += 1 + draw(4)) {
                  const start = at;
                  at += 1 + draw(3);
                  found.push({ start, end: at, type: 'abc'[draw(3)], text: '' });
                }
                return found;
              };
              const name = (e) => `${e.start}-${e.end}-${e.type}`;
              for (let round = 0; round < 2000; round++) {
                const [before, after] = [side(), side()];
                const found = differences(before, after);
                for (const [all, others, key] of [[before, after, 'old'], [after, before, 'fresh']]) {
                  const named = found.filter((d) => d[key]).map((d) => name(d[key]));
                  const same = all.filter((e) => others.some((o) => name(o) === name(e))).map(name);
                  if ([...named, ...same].sort().join() !== all.map(name).sort().join()) return round;
                }
                for (const { kind, old, fresh } of found) {
                  const right = { lost: old && !fresh, gained: fresh && !old,
                    moved: old && fresh && old.type === fresh.type,
                    retyped: old && fresh && old.type !== fresh.type }[kind];
                  if (!right) return `${round} ${kind}`;
                }
              }
              return 'all';
            })
            """
        )
        == "all"
    )


def test_links_bring_everything_back(page: Page, url: str, model: Path) -> None:
    text = 'a & b = "c" #1 100% + ada 😀 in lisbon'
    page.type("x")
    page.script("document.getElementById('text').value = arguments[0]", text)
    page["text"].send_keys(" ")
    page.settle()
    page.press("slider", "ARROW_LEFT")
    page.until(lambda: "by step 3." in page["said"].text)
    page.until(lambda: page.driver.current_url.endswith("&step=3"))
    one = page.driver.current_url
    page.all("label[for=mode-two]")[0].click()
    page.until(lambda: "step 2 and step 3" in page["said"].text)
    page.until(lambda: page.driver.current_url.endswith("&compare=2-3"))
    two = page.driver.current_url
    assert one.startswith(f"{url}#")
    page.open(one)
    assert page["text"].get_attribute("value") == text + " "
    page.until(lambda: "by step 3." in page["said"].text)
    assert page.entities() == expected(model, text + " ", 3)
    page.open(two)
    page.until(lambda: "step 2 and step 3" in page["said"].text)
    page.open(f"{url}#text=ada&step=99")  # a step that is gone: the current one
    page.until(lambda: "by step 4." in page["said"].text)
    page.open(f"{url}#text=ada&compare=1-zzz&step=-3")
    page.until(lambda: "by step 4." in page["said"].text)


def test_markup_in_text_and_labels_stays_text(page: Page, model: Path) -> None:
    text = (
        f"ada {MARKUP} <script>alert(2)</script> &lt;b&gt; ' onclick=alert(3) \" lisbon javascript:alert(4)"
    )
    page.type(text)
    assert page.entities() == expected(model, text, 4)
    assert any("<b><img" in type_ for _, type_ in page.entities())
    page.all("label[for=mode-two]")[0].click()
    page.until(lambda: "step 3 and step 4" in page["said"].text)
    names = page.script("return [...document.querySelectorAll('main *, dialog *')].map((e) => e.localName)")
    assert not {"img", "script", "b", "iframe", "svg", "a"} & (set(names) - {"b"})
    assert page.script("return document.querySelectorAll('main b b, main img, main script').length") == 0
    assert page.script(
        "return [...document.querySelectorAll('*')].every((e) =>"
        " [...e.attributes].every((a) => !a.name.startsWith('on')))"
    )
    heads = page.script(
        "return [...document.querySelectorAll('#heat-table tbody th')].map((e) => e.textContent)"
    )
    assert TYPES[2] in heads


def test_positions_count_characters_beyond_the_first_plane(page: Page, model: Path) -> None:
    text = "😀😀 ada saw 李 the 🦊 heron in lisbon"
    page.open(page.driver.current_url.split("#")[0] + "#text=" + text)
    assert page.entities() == expected(model, text, 4)


CONTRAST = """
const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
const rgb = (layers) => {
  canvas.clearRect(0, 0, 1, 1);
  for (const layer of layers) { canvas.fillStyle = layer; canvas.fillRect(0, 0, 1, 1); }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const bad = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !element.checkVisibility() || element.closest('.hidden, :disabled, .skip')) continue;
  const behind = [];
  for (let e = element; e; e = e.parentElement) behind.unshift(getComputedStyle(e).backgroundColor);
  const back = rgb(['white', ...behind]);
  const front = rgb(['white', ...behind, getComputedStyle(element).color]);
  const [a, b] = [light(back), light(front)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) bad.push(`${element.outerHTML.slice(0, 80)}: ${ratio.toFixed(2)}`);
}
return bad;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_sufficient(page: Page, scheme: str) -> None:
    page.scheme(scheme)
    page.type(TEXT + " " + TEXTS[1])
    assert page.script(CONTRAST) == []
    page.all("label[for=mode-two]")[0].click()
    page.until(lambda: "step 3 and step 4" in page["said"].text)
    page.until(lambda: page.script("return document.getAnimations().length") == 0)
    assert page.script(CONTRAST) == []
    paper = page.script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, paper.strip("rgb()").split(","))) < 200) == (scheme == "dark")


def test_the_theme_can_be_chosen(page: Page) -> None:
    def dark() -> bool:
        paper = page.script("return getComputedStyle(document.body).backgroundColor")
        return sum(map(int, paper.strip("rgb()").split(","))) < 200

    assert not dark()
    for name, is_dark in (("light", False), ("dark", True)):
        page["theme"].click()
        assert (page["theme"].text, dark()) == (f"Theme: {name}", is_dark)
    page.driver.refresh()
    page.until(lambda: page["theme"].text == "Theme: dark")
    page["theme"].click()
    assert not dark()


def test_it_fits_a_phone(page: Page) -> None:
    page.width(360)
    page.type(TEXT + " " + "x" * 200)
    for mode in ("mode-one", "mode-two"):
        page.all(f"label[for={mode}]")[0].click()
        page.settle()
        assert page.script("return document.documentElement.scrollWidth") <= 360


def test_the_keyboard_reaches_everything(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.type(TEXT)
    page.press("slider", "ARROW_LEFT")
    reached = []
    page.script("document.getElementById('skip').focus()")
    for _ in range(25):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        name, outlined = page.script(
            "const e = document.activeElement;"
            "const shown = e.matches('.modes input') ? e.nextElementSibling : e;"
            "return [e.id || e.dataset.step || e.localName, getComputedStyle(shown).outlineStyle !== 'none']"
        )
        if name == "body" or name in reached:
            break
        assert outlined, name
        reached.append(name)
    assert {"text", "example", "link", "theme", "slider", "earlier", "later", "play", "heat-scroll"} <= set(
        reached
    )
    assert {"1", "2", "3", "4"} <= set(reached)
    assert {"mode-one", "mode-two"} & set(reached)


def test_a_key_is_asked_for_and_kept(browser: Page, model: Path) -> None:
    with in_background(model, ServeSettings(port=0, api_key=KEY)) as url:
        browser.driver.get(url)
        for given in ("wrong", "one that no header can hold: €", KEY):
            browser.until(lambda: browser["key-dialog"].get_attribute("open") is not None)
            browser["key"].send_keys(given)
            browser.all("#key-form button")[0].click()
        browser.until(lambda: browser.script("return document.documentElement.dataset.ready") == "true")
        browser.type(TEXT)
        assert browser.entities() == expected(model, TEXT, 4)
        browser.driver.refresh()
        browser.until(lambda: browser.script("return document.documentElement.dataset.ready") == "true")
        assert browser["key-dialog"].get_attribute("open") is None
        assert KEY not in browser.driver.current_url
        browser.driver.get("about:blank")
    browser.driver.get_log("browser")


def test_a_new_step_appears_while_the_page_is_open(
    browser: Page, model: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    with in_background(folder, ServeSettings(port=0, reload_seconds=0.05)) as url:
        browser.open(f"{url}#text={TEXT}")
        add_step(tiny_encoder, folder, [*TYPES, "late"], seed=9)
        browser.until(lambda: httpx.get(f"{url}model", verify=False).json()["current"] == 5)
        browser.script("document.dispatchEvent(new Event('visibilitychange'))")
        browser.until(lambda: "step 5 is current" in browser["about"].text)
        browser.until(lambda: "by step 5." in browser["said"].text)
        assert browser.entities() == expected(folder, TEXT, 5)
        ModelFolder(folder).point_to(1)
        browser.driver.get("about:blank")
    browser.driver.get_log("browser")
