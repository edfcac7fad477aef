"""``cfner explain``: what is shown is what training used, checked by recounting; the page stays text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cfner.corpus.corpus import Corpus
from cfner.errors import ConfigError, CorpusError, ModelError, StreamError
from cfner.practice.explain.explanation import Explanation, TokenExplanation
from cfner.practice.explain.page import page

EPOCHS = 3
ALL = 100  # labels shown: more than there are


@pytest.fixture(scope="module")
def run(tiny_encoder: Path, tiny_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained stream of two steps: animal, city and dish first, then person."""
    from cfner.runs.stream_run import run_stream
    from cfner.stream.stream import TaskStream
    from cfner.training.config import TrainingConfig

    stream = TaskStream.split(tiny_corpus, first=3, per_step=1, min_mentions=1)
    rates = {"lr_encoder": 3e-3, "lr_head": 3e-2}
    config = TrainingConfig(encoder=str(tiny_encoder), method="cfner", epochs=EPOCHS, batch_size=8, **rates)
    folder = tmp_path_factory.mktemp("run") / "cfner"
    run_stream(stream, config, folder)
    return folder


class Models:
    """Teacher, student and step of the run; the student under any method."""

    def __init__(self, folder: Path, corpus: Corpus) -> None:
        from cfner.runs.rebuild import recorded_stream
        from cfner.tagger import ContinualTagger

        self.folder = folder
        self.step = recorded_stream(folder, corpus)[1]
        self.teacher = ContinualTagger.load(folder, 1)

    def explain(self, method: str = "cfner", without: tuple[str, ...] = (), **wanted: Any) -> Explanation:
        from cfner.practice.explain.explain import explain_step
        from cfner.tagger import ContinualTagger

        student = ContinualTagger.load(self.folder, 2, method=method, without=without)
        return explain_step(self.teacher, student, self.step, **wanted)

    def teacher_says(self) -> tuple[list[str], list[float]]:
        """(label, its probability) of every word of the slice, by plain prediction."""
        from cfner.batches.encoding import encode
        from cfner.network.inference import outputs

        model = self.teacher.model
        text = encode(self.step.train, model.tokenizer, max_length=model.max_length)
        best = {}
        for batch, out in outputs(model.network, text):
            for ref, row in zip(batch.refs.tolist(), out.logits.softmax(1), strict=True):
                best[ref] = (model.labels.labels[int(row.argmax())], float(row.max()))
        labels, scores = zip(*(best[ref] for ref in range(text.words)), strict=True)
        return list(labels), list(scores)


@pytest.fixture(scope="module")
def models(run: Path, tiny_corpus: Corpus) -> Models:
    return Models(run, tiny_corpus)


@pytest.fixture(scope="module")
def whole_slice(models: Models) -> list[Explanation]:
    """Every sentence of the slice, in epoch 2."""
    return [models.explain(sentence=i, epoch=2, top=ALL) for i in range(len(models.step.train))]


def every_token(explanations: list[Explanation]) -> list[TokenExplanation]:
    return [token for e in explanations for token in e.tokens]


def test_each_token_goes_to_the_loss_that_its_label_and_the_teacher_decide(
    models: Models, whole_slice: list[Explanation]
) -> None:
    delta = 1.0 + (2 - 1) / (EPOCHS - 1) * (0.0 - 1.0)
    seen = set()
    for token, label, confidence in zip(every_token(whole_slice), *models.teacher_says(), strict=True):
        if token.label != "O":
            expected = "Effect_E"
        elif label != "O" and confidence > delta:
            expected = "Effect_O"
        else:
            expected = "distillation"
        assert token.path == expected
        assert token.teacher_label == label
        assert token.confidence == pytest.approx(confidence, abs=1e-5)
        seen.add(expected)
    assert seen == {"Effect_E", "Effect_O", "distillation"}  # or this test shows little


def test_the_summary_is_the_sum_of_its_sentences(whole_slice: list[Explanation]) -> None:
    tokens, summary = every_token(whole_slice), whole_slice[0].slice
    defined = [t for t in tokens if t.pool == "defined-other"]
    hidden = [t for t in tokens if t.label == "O" and t.truth != "O"]
    assert summary.tokens == len(tokens)
    assert summary.entity_tokens == sum(t.label != "O" for t in tokens)
    assert summary.other_tokens == sum(t.label == "O" for t in tokens)
    assert summary.defined_other == len(defined)
    assert summary.defined_other_right == sum(t.teacher_label == t.truth for t in defined)
    assert summary.hidden_old == len(hidden)
    assert summary.hidden_old_found == sum(t.teacher_label[2:] == str(t.truth)[2:] for t in hidden)
    for epoch in summary.epochs:
        chosen = [t for t in defined if t.joins is not None and t.joins <= epoch.epoch]
        assert epoch.selected == len(chosen)
        assert epoch.right == sum(t.teacher_label == t.truth for t in chosen)
        assert epoch.right_type == sum(t.teacher_label[2:] == str(t.truth)[2:] for t in chosen)
    assert [epoch.threshold for epoch in summary.epochs] == [1.0, 0.5, 0.0]
    assert summary.epochs[0].selected == 0 < summary.epochs[-1].selected == len(defined)


def test_what_a_loss_read_is_the_weighted_average_of_anchor_and_matches(
    whole_slice: list[Explanation],
) -> None:
    checked = 0
    for token in every_token(whole_slice):
        if token.averaged is None:
            continue
        average: dict[str, float] = {}
        sources = [(token.anchor_weight, token.student)]
        sources += [(match.weight, match.student) for match in token.matches]
        for weight, distribution in sources:
            for share in distribution.top:
                average[share.label] = average.get(share.label, 0.0) + weight * share.p
        assert {share.label: share.p for share in token.averaged.top} == pytest.approx(average, abs=1e-5)
        checked += bool(token.matches)
    assert checked > 10


def test_matches_are_the_nearest_of_the_pool_by_brute_force(
    models: Models, whole_slice: list[Explanation]
) -> None:
    import torch
    import torch.nn.functional as F

    from cfner.batches.encoding import encode
    from cfner.network.inference import outputs

    model = models.teacher.model
    text = encode(models.step.train, model.tokenizer, max_length=model.max_length)
    features = torch.zeros(text.words, model.network.head.hidden)
    for batch, out in outputs(model.network, text):
        features[batch.refs] = F.normalize(out.features, dim=1)
    tokens = every_token(whole_slice)
    for anchor, token in enumerate(tokens):
        if token.pool is None:
            assert not token.matches
            continue
        pool = [i for i, other in enumerate(tokens) if other.pool == token.pool and i != anchor]
        nearest = sorted(float(1 - features[anchor] @ features[i]) for i in pool)[:3]
        assert [match.distance for match in token.matches] == pytest.approx(nearest, abs=1e-5)
        for match in token.matches:
            found = tokens[int(text.sentence_bounds[match.sentence]) + match.position]
            assert (found.word, found.label, found.truth) == (match.word, match.label, match.truth)


def distributions(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.keys() == {"top", "rest", "group"}:
            yield value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from distributions(part)


def test_json_is_json_and_its_distributions_and_weights_sum_to_one(models: Models) -> None:
    data = json.loads(json.dumps(models.explain(top=2).to_json()))
    found = list(distributions(data))
    assert found
    for distribution in found:
        shares = [share["p"] for share in distribution["top"]]
        assert shares == sorted(shares, reverse=True) and len(shares) <= 2
        assert sum(shares) + distribution["rest"] == pytest.approx(1, abs=1e-5)
    for token in data["tokens"]:
        matched = sum(match["weight"] for match in token["matches"])
        assert token["anchor_weight"] + matched == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("method", "entity", "other"),
    [
        ("finetune", "cross-entropy", "cross-entropy"),
        ("self-training", "cross-entropy", "cross-entropy"),
        ("extendner", "cross-entropy", "distillation"),
        ("lucir", "cross-entropy + keep features", "keep features + margin ranking"),
        ("podnet", "nca + keep features + pod spatial", "keep features + pod spatial"),
    ],
)
def test_methods_without_effects_show_their_losses_and_no_matches(
    models: Models, method: str, entity: str, other: str
) -> None:
    e = models.explain(method)
    for token in e.tokens:
        assert token.path == (other if token.label == "O" else entity)
        assert not token.matches and token.averaged is None and not token.selected
        taught = token.teacher_label if method == "self-training" and token.label == "O" else token.label
        assert token.trained_on == taught
    assert e.k == 0 and e.threshold is None and not e.slice.epochs
    assert "no causal effects" in page(e)


def test_lucir_with_effects_ranks_every_token_labelled_o(models: Models) -> None:
    paths = {token.path for token in models.explain("lucir+cf", epoch=EPOCHS).tokens}
    assert paths <= {"Effect_E", "Effect_O + margin ranking", "distillation + margin ranking"}


def test_a_part_left_out_has_no_matches_shown(models: Models) -> None:
    without_o = models.explain(without=("effect_o",), epoch=EPOCHS)
    assert {t.path for t in without_o.tokens} <= {"Effect_E", "distillation"}
    assert all(token.pool == "entity" for token in without_o.anchors) and without_o.threshold is None
    without_e = models.explain(without=("effect_e",), epoch=EPOCHS)
    assert all(token.pool == "defined-other" for token in without_e.anchors)
    assert {t.path for t in without_e.tokens} <= {"cross-entropy", "Effect_O", "distillation"}


def test_by_default_the_sentence_with_most_anchors_and_the_saved_epoch(
    models: Models, whole_slice: list[Explanation]
) -> None:
    e = models.explain()
    pooled = [sum(token.pool is not None for token in other.tokens) for other in whole_slice]
    assert pooled[e.sentence] == max(pooled)
    assert e.epoch == e.best_epoch


def test_explaining_changes_neither_model(models: Models) -> None:
    before = models.teacher.model.network.head.weight.clone()
    models.explain()
    assert models.teacher.model.network.head.weight.equal(before)


# -- refusals ----------------------------------------------------------------------------------------------


def test_what_cannot_be_explained_is_refused(run: Path, models: Models, tiny_corpus: Corpus) -> None:
    from cfner.practice.explain.explain import explain_run

    for step in (0, 1, 3):
        with pytest.raises(ConfigError, match="Steps with a teacher: 2"):
            explain_run(run, tiny_corpus, step)
        with pytest.raises(ConfigError, match=f"Step {step} cannot be explained"):
            explain_run(f"{run}@{step}", tiny_corpus)
    with pytest.raises(ConfigError, match="numbered 0 to"):
        models.explain(sentence=10_000)
    with pytest.raises(ConfigError, match="epochs 1 to 3"):
        models.explain(epoch=4)
    with pytest.raises(ConfigError, match="no teacher"):
        models.explain("joint")
    with pytest.raises(ModelError, match="no run here"):
        Models(run / "steps", tiny_corpus)


def test_another_corpus_is_refused(run: Path, tiny_corpus: Corpus) -> None:
    from cfner.runs.rebuild import recorded_stream

    fewer = replace(tiny_corpus, train=tiny_corpus.train[1:])
    with pytest.raises(StreamError, match="had 45 sentences, here 44"):
        recorded_stream(run, fewer)
    with pytest.raises(StreamError, match="different sentences"):
        recorded_stream(run, replace(tiny_corpus, train=tiny_corpus.train[::-1]))


def test_a_run_that_was_scored_on_other_sentences_is_the_same_run(run: Path, tiny_corpus: Corpus) -> None:
    """As with --score-every and --score-on: what was learned from is what is explained."""
    from cfner.runs.rebuild import recorded_stream

    again = recorded_stream(run, replace(tiny_corpus, test=tiny_corpus.test[1:]))
    assert again.manifest()["steps"] == recorded_stream(run, tiny_corpus).manifest()["steps"]


@pytest.mark.parametrize("order", [None, ("person", "dish", "animal")])
def test_a_stream_is_rebuilt_from_its_manifest_alone(
    tiny_corpus: Corpus, tmp_path: Path, order: tuple[str, ...] | None
) -> None:
    from cfner.runs.rebuild import recorded_stream
    from cfner.stream.stream import TaskStream

    stream = TaskStream.split(
        tiny_corpus, first=1, per_step=2, order=order, sampling="random", seed=5, min_mentions=35
    )
    assert stream.dropped_types  # they are part of the hash too
    hashes = {"stream": stream.manifest()["hash"], "config": ""}
    (tmp_path / "run.json").write_text(json.dumps({"manifest": stream.manifest(), "hashes": hashes}))
    again = recorded_stream(tmp_path, tiny_corpus)
    assert again.manifest() == {**stream.manifest(), "left_out_types": list(again.left_out_types)}


# -- the page ----------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "'><a href='http://example.org'>x</a>",
    "</style><style>*{display:none}</style>",
    "&lt;b&gt; &amp; <!-- -->",
    "]]><![CDATA[<svg/onload=alert(1)>",
    "\x00\x1b[31m\u202e\ud800",
]
TAGS = {"html", "head", "meta", "title", "style", "body", "main", "header", "section", "article", "figure"}
TAGS |= {"figcaption", "h1", "h2", "h3", "h4", "p", "div", "span", "b", "i", "a", "small", "bdi", "mark"}
TAGS |= {"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "href", "title", "style", "id"}


class Reader(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def with_text(value: Any, text: str) -> Any:
    """The same explanation with every string in it replaced."""
    if isinstance(value, str):
        return text
    if isinstance(value, tuple):
        return tuple(with_text(part, text) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        kept = {"pool", "role"}
        return replace(
            value,
            **{f.name: with_text(getattr(value, f.name), text) for f in fields(value) if f.name not in kept},
        )
    return value


def check_page(html: str, text: str, shown: str) -> None:
    html.encode("utf-8")
    reader = Reader()
    reader.feed(html)
    assert reader.tags <= TAGS
    assert {name for name, _ in reader.attributes} <= ATTRIBUTES
    assert all(str(value).startswith("#") for name, value in reader.attributes if name == "href")
    if text.strip():
        assert shown in "".join(reader.text)


def visible(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("method", ["cfner", "self-training"])
def test_hostile_words_and_labels_stay_text(models: Models, method: str, text: str) -> None:
    check_page(page(with_text(models.explain(method, epoch=2), text)), text, visible(text))


def test_any_word_stays_text(models: Models) -> None:
    e = models.explain(epoch=2)
    e = replace(e, tokens=(e.anchors[0], next(token for token in e.tokens if not token.matches)))

    @given(st.text(max_size=20))
    @settings(max_examples=40, deadline=None)
    def holds(text: str) -> None:
        check_page(page(with_text(e, text)), text, visible(text))

    holds()


def test_the_page_needs_nothing_from_elsewhere(models: Models) -> None:
    html = page(models.explain(epoch=2))
    for outside in ("http:", "https:", "src=", "url(", "@import", "<script", "<link"):
        assert outside not in html
    assert "light-dark(" in html and "default-src 'none'" in html


# -- the command -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tiny_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cfner.corpus.writers import write_sentences

    folder = tmp_path_factory.mktemp("data")
    for name in ("train", "dev", "test"):
        write_sentences(tiny_corpus.split_named(name), folder / f"{name}.txt", format="conll")
    return folder


def test_the_command_prints_writes_and_refuses(run: Path, data: Path, tmp_path: Path) -> None:
    from cfner.cli.main import app

    call = ["explain", str(run), str(data), "--step", "2", "--sentence", "3", "--epoch", "2"]
    shown = CliRunner().invoke(app, [*call, "--html", str(tmp_path / "page.html")], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    assert "sentence 3" in shown.output and "went to" not in shown.output  # the page has the rest
    assert len(shown.output.splitlines()) < 10
    terminal = CliRunner().invoke(app, call, env={"COLUMNS": "80"}).output
    assert "sentence 3 of the slice" in terminal and "went to" in terminal
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    told = CliRunner().invoke(app, [*call, "--json"])
    assert json.loads(told.output)["sentence"] == 3
    refused = CliRunner().invoke(app, [*call, "--every", "2"])
    assert isinstance(refused.exception, StreamError) and "--every" in str(refused.exception)
    unwritable = CliRunner().invoke(app, [*call, "--html", str(tmp_path / "page.html" / "page.html")])
    assert isinstance(unwritable.exception, CorpusError)
    (tmp_path / "page.html").write_text("mine")
    occupied = CliRunner().invoke(app, [*call, "--html", str(tmp_path / "page.html")])
    assert "the file exists" in str(occupied.exception)
    assert (tmp_path / "page.html").read_text() == "mine"
    replaced = CliRunner().invoke(app, [*call, "--html", str(tmp_path / "page.html"), "--overwrite"])
    assert replaced.exit_code == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_no_word_is_broken_at_80_columns(models: Models) -> None:
    """Labels as long as those of real corpora."""
    from rich.console import Console

    from cfner.cli.explain import _tokens_table

    found = models.explain(epoch=2)
    long = {"top": tuple(replace(found.tokens[0].teacher.top[0], label="I-MEDICALRECORD") for _ in range(3))}
    tokens = tuple(
        replace(token, truth="B-MEDICALRECORD", teacher=replace(token.teacher, **long))
        for token in found.tokens
    )
    screen = Console(width=80, record=True, file=io.StringIO())
    screen.print(_tokens_table(replace(found, tokens=tokens)))
    shown = screen.export_text()
    assert "distillation" in shown and "B-MEDICALRECORD" in shown
    assert max(map(len, shown.splitlines())) <= 80


# -- models that `learn` made ------------------------------------------------------------------------------


@pytest.fixture
def typed(tmp_path: Path, tiny_corpus: Corpus, data: Path) -> Any:
    """Files for a step that learns dishes, and commands as somebody types them, in their folder."""
    from cfner.cli.main import app
    from cfner.corpus.writers import write_sentences

    write_sentences([s.only(["dish"]) for s in tiny_corpus.train], tmp_path / "new.conll", format="conll")
    write_sentences([s.only(["city"]) for s in tiny_corpus.test], tmp_path / "guard.conll", format="conll")
    write_sentences([s.only(["city"]) for s in tiny_corpus.dev[:5]], tmp_path / "old.conll", format="conll")
    (tmp_path / "text.txt").write_text("\n".join(" ".join(s.words) for s in tiny_corpus.dev))

    def run(*words: object) -> Any:
        here = [str(tmp_path / word) if (tmp_path / str(word)).is_file() else str(word) for word in words]
        return CliRunner().invoke(app, here, env={"COLUMNS": "200"})

    return run


MORE = {
    "cfner": [],
    "own-other": ["--unlabelled", "text.txt", "--guard", "guard.conll", "--replay", "old.conll"],
}


@pytest.mark.parametrize("method", MORE)
def test_a_step_that_learn_added_is_explained(
    method: str, typed: Any, checkpoint: Path, tmp_path: Path
) -> None:
    out, more, other = tmp_path / "m", MORE[method], next(MORE[m] for m in MORE if m != method)
    call = ["learn", checkpoint, "new.conll", "--out", out, "--method", method, "--epochs", "2"]
    # without folds a part of the sentences is held out; with them all are trained on
    done = typed(*call, *more, "--folds", "0" if more else "2")
    assert done.exit_code in (0, 3), done.output
    out = out if done.exit_code == 0 else Path(f"{out}.refused")
    told = typed("explain", out, "new.conll", "--json", *more)
    assert told.exit_code == 0, told.exception
    found = json.loads(told.output)
    assert (found["step"], found["new_types"], found["old_types"]) == (2, ["dish"], ["animal", "city"])
    assert found["method"] == method and found["tokens"] and found["epochs"] == 2
    shown = typed("explain", out, "new.conll", "--sentence", "1", "--html", tmp_path / "p.html", *more)
    assert shown.exit_code == 0 and "Every token of sentence 1" in shown.output
    wrong = typed("explain", out, "guard.conll", *more).exception
    assert isinstance(wrong, StreamError) and "This is not the training data of step 2" in str(wrong)
    wrong = typed("explain", out, "new.conll", *other).exception
    assert isinstance(wrong, StreamError) and "old sentences (--replay)" in str(wrong)


@pytest.mark.parametrize(
    ("method", "term", "has_value"), [("tbcl", "erased_copy", True), ("is3", "prototypes", False)]
)
def test_losses_of_another_view_and_of_no_word_are_shown(
    method: str, term: str, has_value: bool, models: Models
) -> None:
    """Every word is read in the copy too; the loss of kept prototypes is no word's."""
    tokens = models.explain(method=method, sentence=0).tokens
    for token in tokens:
        (loss,) = [loss for loss in token.losses if loss.term == term]
        assert (loss.value is not None) == has_value
