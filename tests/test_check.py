"""What is said about data before a model learns from it: each finding where it belongs, and only there."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cfner.cli.check import check as check_command
from cfner.cli.main import app as whole_app
from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.writers import write_sentences
from cfner.errors import ConfigError, CorpusError
from cfner.evaluation.intervals import Interval
from cfner.practice.check.check import check
from cfner.practice.check.curve import Advice, advice_on
from cfner.practice.check.findings import SEVERITIES, CheckReport, Finding, ModelFacts
from cfner.practice.check.mentions import (
    balance_findings,
    column_findings,
    labelled_surfaces,
    rarity_findings,
    surface_findings,
    unlabelled_surfaces,
)
from cfner.practice.check.names import look_alike, look_alikes, name_findings
from cfner.practice.check.sentences import character_findings, length_findings, repetition_findings
from cfner.practice.learn.plan import OLD_LABELS, plan_step
from cfner.stream.step import Step


def kinds(findings: Sequence[Finding] | Any) -> list[str]:
    return [finding.kind for finding in findings]


# what would be learned

names = st.sets(st.sampled_from("ABCDEF"), max_size=5)


@given(
    names, names, st.none() | st.lists(st.sampled_from("ABCDEFG"), max_size=4), st.sampled_from(OLD_LABELS)
)
def test_a_plan_puts_every_type_of_the_data_in_one_group(
    labelled: set[str], known: set[str], wanted: list[str] | None, old_labels: str
) -> None:
    impossible = not labelled or (wanted is not None and (not wanted or not set(wanted) <= labelled))
    undecided = wanted is None and old_labels == "error" and labelled & known and labelled - known
    if impossible or undecided:
        with pytest.raises(ConfigError) as error:
            plan_step(labelled, known, wanted, old_labels)
        assert error.value.remedy
        return
    plan = plan_step(labelled, known, wanted, old_labels)
    assert Counter([*plan.new, *plan.more, *plan.ignored]) == Counter(labelled)
    assert plan.current and set(plan.current) == {*plan.new, *plan.more}
    assert not set(plan.new) & known and set(plan.more) <= known
    if wanted is not None:
        assert set(plan.current) >= set(wanted)
        assert set(plan.current) - set(wanted) <= (known if old_labels == "use" else set())
    elif labelled <= known:
        assert plan.more == tuple(sorted(labelled)) and not plan.ignored
    else:
        assert set(plan.new) == labelled - known
        assert bool(plan.more) == bool(old_labels == "use" and labelled & known)


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ConfigError, match="ignore"):
        plan_step(["A"], [], None, "ignor")


# names

SAME = [
    ("PER", "PERSON"),
    ("ORG", "organisation"),
    ("ORGANIZATION", "Organisation"),
    ("LOC", "Location"),
    ("date-birth", "DATE_BIRTH"),
    ("DateBirth", "date birth"),
    ("product", "Products"),
    ("company", "companies"),
    ("PHONE_NUMBER", "TelNum"),
    ("OtherPER", "other-person"),
]
SIMILAR = [
    ("PROC", "procedure"),
    ("ORGANIZTION", "ORGANIZATION"),
    ("MusicalCMP", "MusicalComposer"),
    ("instrument", "instrumnet"),
]
DIFFERENT = [
    ("date", "date-birth"),
    ("art", "artist"),
    ("PER", "PERCENT"),
    ("ORG", "ORGANISM"),
    ("GPE", "LOC"),
    ("person", "person-actor"),
    ("movie_name", "movie_type"),
    ("PrivateCorp", "PublicCorp"),
    ("level1", "level2"),
    ("state", "status"),
    ("poi", "geographic_poi"),
]


@pytest.mark.parametrize(
    ("left", "right", "strong"), [(*p, True) for p in SAME] + [(*p, False) for p in SIMILAR]
)
def test_names_that_look_like_one_type(left: str, right: str, strong: bool) -> None:
    for found in (look_alikes([left], [right]), look_alikes([right], [left]), look_alikes([left, right])):
        assert [alike.strong for alike in found] == [strong]


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_names_of_different_types(left: str, right: str) -> None:
    assert look_alikes([left, right]) == look_alikes([left], [right]) == look_alikes([right], [left]) == []


@given(st.text(max_size=12), st.text(max_size=12))
def test_likeness_is_symmetric_and_no_name_is_like_itself(left: str, right: str) -> None:
    found, reverse = look_alike(left, right), look_alike(right, left)
    assert (found and found[2:]) == (reverse and reverse[2:])
    assert look_alike(left, left) is None


@pytest.mark.skipif("CFNER_DATA" not in os.environ, reason="CFNER_DATA names no folder of real corpora")
def test_no_real_corpus_has_types_that_look_alike() -> None:
    for folder in sorted(Path(os.environ["CFNER_DATA"]).iterdir()):
        if (folder / "dev.txt").is_file():
            assert look_alikes(Corpus.read(folder / "dev.txt").types) == [], folder.name


SPELLINGS = ("Prod", "PROD", "product", "Products", "PRODUCT")


def test_all_spellings_of_a_type_are_one_finding_with_a_command_that_mends_it(tmp_path: Path) -> None:
    data = tmp_path / "five spellings.conll"
    counts = {name: number for number, name in enumerate(SPELLINGS, start=1)}
    write_sentences(
        [
            Sentence(("buy", "x", str(n)), (Span(1, 2, name),))
            for name in SPELLINGS
            for n in range(counts[name])
        ],
        data,
    )
    alike = [f for f in check(data).findings if f.kind == "similar types"]
    (finding,) = alike
    assert finding.severity == "error" and all(f"'{name}'" in finding.message for name in SPELLINGS)
    assert finding.command is not None
    words = shlex.split(finding.command)
    assert words[:2] == ["cfner", "data"]
    assert runner.invoke(whole_app, words[1:]).exit_code == 0
    mended = Corpus.read(tmp_path / "five spellings-renamed.conll")
    assert mended.mentions("train") == {"PRODUCT": 15}  # the name with the most mentions stays
    assert "similar types" not in kinds(check(tmp_path / "five spellings-renamed.conll").findings)


def test_a_known_name_wins_and_names_learned_as_two_types_are_two() -> None:
    (finding,) = name_findings(["PER", "persons"], ["person", "city"])
    assert finding.kind == "similar to a known type" and "knows as 'person'" in finding.message
    assert list(name_findings(["PER", "person"], ["PER", "person"])) == []
    (weak,) = name_findings(["instrument", "instrumnet"], [])
    assert weak.severity == "note"


def test_data_that_was_surely_read_wrongly() -> None:
    assert kinds(column_findings([sentence("ada", (0, 1, "x"))] * 20)) == ["one word each"]
    assert kinds(column_findings([sentence("ada", (0, 1, "x"))] * 19)) == []
    words = [sentence(f"in word{n}", (1, 2, f"word{n}")) for n in range(100)]
    assert kinds(column_findings(words)) == ["types like words"]
    assert kinds(column_findings(words[:99])) == []
    labelled = [f.severity for f in balance_findings([sentence("ada bob", (0, 2, "x"))] * 50)]
    assert labelled == ["error"]  # a hundred words, and none is O


# sentences


def sentence(text: str, *spans: tuple[int, int, str], source: str | None = None) -> Sentence:
    return Sentence(tuple(text.split()), tuple(Span(*span) for span in spans), source=source)


PLAIN = [sentence(f"nothing happens on day {number}") for number in range(30)]


def test_repeated_leaked_and_contradictory_sentences() -> None:
    ada = sentence("ada is here", (0, 1, "person"), source="a:1")
    not_ada = sentence("ada is here", source="a:9")
    clean = Corpus("c", (*PLAIN, ada), (sentence("dev only"),), (sentence("test only"),))
    assert kinds(repetition_findings(clean)) == []
    dirty = Corpus("c", (*PLAIN[:9], ada, not_ada), (ada,), (PLAIN[0], PLAIN[1]))
    found = {finding.kind: finding for finding in repetition_findings(dirty)}
    assert set(found) == {"leak", "labelled differently", "repeated sentences"}
    assert "'ada' as person" in found["labelled differently"].message
    assert found["labelled differently"].where == "a:9" and "a:1" in (
        found["labelled differently"].remedy or ""
    )
    leaks = [f.message for f in repetition_findings(dirty) if f.kind == "leak"]
    assert (
        len(leaks) == 2 and "dev shares 1 sentence (100 % of it)" in leaks[0] and "test shares 2" in leaks[1]
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_contradictions_are_counted_as_a_naive_count_does(rows: list[tuple[str, bool]]) -> None:
    train = [Sentence((word,), (Span(0, 1, "x"),) if labelled else ()) for word, labelled in rows]
    first: dict[str, bool] = {}
    differing = sum(first.setdefault(word, labelled) != labelled for word, labelled in rows)
    found = [
        f.message for f in repetition_findings(Corpus("c", tuple(train))) if f.kind.startswith("labelled")
    ]
    assert [message.split()[0] for message in found] == ([str(differing)] if differing else [])


def test_odd_characters_and_lengths() -> None:
    words = ["caf\ufffd", "MÃºsica", "zero\u200bwidth", "pаypal", "naïve", "Ωmega", "Москва", "日本"]
    found = list(character_findings([Sentence(tuple(words))]))
    assert kinds(found) == ["encoding", "encoding", "invisible", "scripts"]
    assert "'pаypal', 'Ωmega'" in found[-1].message
    assert kinds(length_findings([Sentence(("a",) * 201), *PLAIN])) == ["long sentences"]
    assert kinds(length_findings(PLAIN)) == kinds(length_findings([])) == []


# mentions


def many(text: str, count: int, *spans: tuple[int, int, str]) -> list[Sentence]:
    return [sentence(f"{text} {number}", *spans) for number in range(count)]


def test_rare_types() -> None:
    train = (*many("ada", 60, (0, 1, "person")), *many("oslo", 12, (0, 1, "city")))
    test = tuple(many("ada", 25, (0, 1, "person")))
    corpus = Corpus("c", train, tuple(many("stew", 3, (0, 1, "dish"))), test)
    found = {finding.kind: finding.message for finding in rarity_findings(corpus, ["person", "city"])}
    assert set(found) == {"few mentions", "not in train", "not in dev", "not in test"}
    assert "city 12" in found["few mentions"] and "person" not in found["few mentions"]
    assert "dish" in found["not in train"] and "city, person" not in found["not in test"]
    alone = Corpus("c", train)
    assert kinds(rarity_findings(alone, ["person"])) == []
    held_out = kinds(rarity_findings(alone, ["person"], held_out=PLAIN))
    assert held_out == ["not in dev"]


def test_data_without_o() -> None:
    assert kinds(balance_findings([sentence("ada", (0, 1, "x"))])) == ["no O"]
    assert kinds(balance_findings(many("ada", 120, (0, 1, "x")))) == ["no plain sentence"]
    assert kinds(balance_findings([*many("ada", 120, (0, 1, "x")), *PLAIN])) == []


def test_words_that_are_labelled_here_and_left_o_there() -> None:
    labelled = many("in New York City today", 8, (1, 4, "city"))
    missed = many("to New York City again", 4)
    common = many("york is a word too", 40) + many("york it is", 5, (0, 1, "city"))
    [finding] = surface_findings([*labelled, *missed, *common], ["city"])
    assert finding.kind == "perhaps unlabelled" and finding.severity == "warning"
    assert "'New York City' (city 8 times, unlabelled 4 times)" in finding.message
    assert finding.message.startswith("1 name is") and "york" not in finding.message
    assert kinds(surface_findings([*labelled, *missed], ["other"])) == []  # not a type to be learned


def test_words_of_two_types() -> None:
    both = [*many("jordan won", 6, (0, 1, "person")), *many("jordan votes", 4, (0, 1, "country"))]
    [finding] = surface_findings(both, ["person"])
    assert finding.kind == "two types" and "'jordan' (person 6, country 4)" in finding.message
    once = [*many("jordan won", 9, (0, 1, "person")), *many("jordan votes", 1, (0, 1, "country"))]
    assert kinds(surface_findings(once, ["person"])) == []


letters = st.sampled_from("ab")


@settings(max_examples=100)
@given(st.lists(st.lists(letters, min_size=1, max_size=9), min_size=1, max_size=4), st.data())
def test_unlabelled_words_are_found_as_a_naive_search_finds_them(
    rows: list[list[str]], data: st.DataObject
) -> None:
    sentences = []
    for words in rows:
        start = data.draw(st.integers(0, len(words) - 1))
        end = data.draw(st.integers(start, len(words)))
        sentences.append(Sentence(tuple(words), (Span(start, end, "x"),) if end > start else ()))
    wanted = {surface: "x" for surface in labelled_surfaces(sentences) if len(surface) <= 6}
    expected: Counter[tuple[str, ...]] = Counter()
    for found in sentences:
        free = [not any(s.start <= at < s.end for s in found.spans) for at in range(len(found))]
        at = 0
        while at < len(found):
            fits = [
                surface
                for surface in wanted
                if found.words[at : at + len(surface)] == surface and all(free[at : at + len(surface)])
            ]
            longest = max(fits, key=len, default=())
            expected[longest] += bool(longest)
            at += len(longest) or 1
    assert unlabelled_surfaces(sentences, wanted) == +expected


# data on disk


def written(folder: Path, **splits: Sequence[Sentence]) -> Path:
    for split, sentences in splits.items():
        write_sentences(tuple(sentences), folder / f"{split}.txt", format="conll")
    return folder


def test_data_alone_needs_no_model(tiny_data: Path) -> None:
    report = check(tiny_data)
    assert report.exit_code == 0 and report.plan is not None and report.model is None and report.time is None
    assert report.plan.new == ("animal", "city", "dish", "person") and report.plan.train_sentences == 60
    assert report.splits["train"].sentences == 60 and report.splits["test"].sentences == 20
    assert report.reading.format == "conll" and report.reading.scheme == "BIO"
    order = [SEVERITIES.index(finding.severity) for finding in report.findings]
    assert order == sorted(order)
    assert report.next_command.startswith(f"cfner train {tiny_data} ")
    as_json = json.loads(json.dumps(report.to_json()))
    assert as_json["plan"]["new"] == list(report.plan.new) and as_json["reading"] == report.reading.to_json()


def test_data_alone_is_checked_without_torch(tiny_data: Path) -> None:
    program = f"import sys; from cfner.practice.check.check import check; check({str(tiny_data)!r})"
    program += "; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_data_without_labels_or_training_sentences_is_an_error(tmp_path: Path) -> None:
    nothing = check(written(tmp_path / "o", train=PLAIN))
    assert "--old-labels" not in nothing.next_command
    assert nothing.exit_code == 1 and nothing.plan is None and "nothing to learn" in nothing.errors[0].message
    untrained = check(written(tmp_path / "t", test=many("ada", 3, (0, 1, "person"))))
    assert [finding.kind for finding in untrained.errors] == ["no training data"]
    with pytest.raises(CorpusError):
        check(tmp_path / "none")
    with pytest.raises(ConfigError, match="Did you mean"):
        check(tmp_path / "o", old_labels="ignored")


# beside a model


def new_data(corpus: Corpus, folder: Path, renamed: dict[str, str], *, keep_dev: bool = True) -> Path:
    """The tiny corpus with other names for its types; types without a name lose their labels."""

    train, dev = (new_labels(part, renamed) for part in (corpus.train, corpus.dev))
    return written(folder, train=train, **({"dev": dev} if keep_dev else {}))


def new_labels(sentences: Sequence[Sentence], renamed: dict[str, str]) -> list[Sentence]:
    return [
        s.with_spans([Span(m.start, m.end, renamed[m.type]) for m in s.spans if m.type in renamed])
        for s in sentences
    ]


def quick(data: Path, model: Path, **options: Any) -> CheckReport:
    return check(data, model, seconds=0, **options)


def test_a_new_name_for_a_known_type_is_noticed(two_steps: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    data = new_data(tiny_corpus, tmp_path, {"city": "Cities", "person": "who"})
    report = quick(data, two_steps)
    assert report.exit_code == 1 and report.plan is not None and report.model is not None
    assert report.plan.new == ("Cities", "who") and set(report.plan.kept) == {
        "animal",
        "city",
        "dish",
        "person",
    }
    assert report.plan.kept_rows == 8 and report.plan.method == "cfner"
    alike = [f.message for f in report.findings if f.kind == "similar to a known type"]
    assert len(alike) == 1 and "'Cities'" in alike[0] and "'city'" in alike[0]
    # and by what the model says of the text, whatever the name
    conflicts = [f.message for f in report.findings if f.kind == "conflict"]
    assert any("'Cities'" in message and "city" in message for message in conflicts)
    assert report.model.conflicts["Cities"]["city"] <= report.model.sampled_mentions["Cities"]
    assert "old types in the text" in kinds(report.findings)
    assert shlex.split(report.next_command)[:4] == ["cfner", "learn", str(two_steps), str(data)]


def test_old_labels_beside_new_ones(two_steps: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    data = new_data(tiny_corpus, tmp_path, {"city": "city", "dish": "meal"}, keep_dev=False)
    refused = quick(data, two_steps)
    assert refused.exit_code == 1 and refused.plan is None and "city" in refused.errors[0].message
    assert "--old-labels ignore" in refused.next_command and " check " in refused.next_command
    ignored = quick(data, two_steps, old_labels="ignore")
    assert ignored.plan is not None and ignored.plan.ignored == ("city",) and ignored.exit_code == 0
    assert "--old-labels ignore" in ignored.next_command and " learn " in ignored.next_command
    used = quick(data, two_steps, old_labels="use")
    assert used.plan is not None and (used.plan.new, used.plan.more) == (("meal",), ("city",))
    named = quick(data, two_steps, types=["city"])
    assert named.plan is not None and (named.plan.more, named.plan.ignored) == (("city",), ("meal",))
    assert named.model is not None and set(named.model.already_found) == {"city"}
    assert 0 < named.model.already_found["city"] <= named.model.sampled_mentions["city"]
    assert quick(data, two_steps, types=["cities"]).exit_code == 1


def test_the_plan_is_what_learn_does(two_steps: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    from cfner.practice.learn.new_data import NewData

    data = new_data(tiny_corpus, tmp_path, {"dish": "meal"}, keep_dev=False)
    plan = quick(data, two_steps, settings={"epochs": 3}).plan
    fresh = NewData.of(Corpus.read(data), dev_share=0)
    assert plan is not None and plan.epochs == 3 and plan.folds == 5
    assert (plan.train_sentences, plan.dev_sentences) == (len(fresh.train), 0)
    afresh = quick(data, two_steps, settings={"method": "joint"})
    assert afresh.exit_code == 1 and afresh.plan is None


def test_the_sample_is_bounded_and_nothing_is_changed(
    two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    data = new_data(tiny_corpus, tmp_path / "data", {"dish": "meal"})
    before = {file: file.read_bytes() for file in two_steps.rglob("*") if file.is_file()}
    report = check(data, two_steps, sample=5, seconds=0.2)
    assert report.model is not None and report.model.sample == 5
    assert report.time is not None and 0 < report.time.low < report.time.high < 600
    assert report.time.batches_timed >= 1
    assert {file: file.read_bytes() for file in two_steps.rglob("*") if file.is_file()} == before


def test_timing_leaves_network_and_randomness_alone(two_steps: Path, tiny_corpus: Corpus) -> None:
    import torch

    from cfner.practice.check.model import encoded
    from cfner.practice.check.time import estimate_time
    from cfner.tagger import ContinualTagger

    tagger = ContinualTagger.open(two_steps)
    network, step = tagger.model.network, more_dishes(tagger.types, tiny_corpus)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    state, python = torch.random.get_rng_state(), random.getstate()
    assert estimate_time(tagger, step, encoded(tagger.model, step.train), seconds=0.1) is not None
    assert estimate_time(tagger, step, encoded(tagger.model, []), seconds=0.1) is None
    assert torch.equal(torch.random.get_rng_state(), state) and random.getstate() == python
    assert not network.training and tagger.types == tuple(step.known)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def more_dishes(known: Sequence[str], corpus: Corpus) -> Step:
    train = new_labels(corpus.train, {"dish": "meal"})
    return Step(types=("meal",), train=tuple(train), known=tuple(known), index=1)


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        ({}, "plain"),
        ({"matches": "exact"}, "more"),
        ({"precision": "bf16"}, "half"),
        ({"freeze_layers": 1}, "frozen"),
    ],
)
def test_the_real_training_is_timed_with_its_settings(
    chosen: dict[str, Any], seen: str, two_steps: Path, tiny_corpus: Corpus
) -> None:
    """The copy that is timed keeps the hooks of the network: they see how it computes."""
    import torch

    from cfner.practice.check.time import time_learning
    from cfner.tagger import ContinualTagger

    settings = {"method": "cfner", "parameters": {"delta_1": 0.0, "delta_m": 0.0}, "precision": "fp32"}
    tagger = ContinualTagger.open(two_steps, **settings | chosen)
    calls: Counter[str] = Counter()

    def watch(body: Any, *_: Any) -> None:
        calls["half"] += torch.is_autocast_enabled("cpu")
        calls["learning"] += body.training
        calls["frozen"] += not list(body.base_model.embeddings.parameters())  # a stand-in: cached
        calls["reading"] += not body.training

    tagger.model.network.body.register_forward_hook(watch)
    timed = time_learning(tagger, more_dishes(tagger.types, tiny_corpus))
    batches = len(timed.batches)
    assert batches == 2 * -(-len(tiny_corpus.train) // tagger.config.batch_size)
    assert calls["learning"] == batches and bool(calls["frozen"]) == (seen == "frozen")
    assert bool(calls["half"]) == (seen == "half")
    assert (calls["reading"] > batches) == (seen == "more")  # matches are read anew for each batch


def test_what_learning_refuses_is_found_by_timing(
    two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    data = new_data(tiny_corpus, tmp_path, {"dish": "meal"})
    report = check(data, two_steps, sample=1, seconds=0.1, settings={"freeze_layers": 99})
    assert report.exit_code == 1 and report.plan is None and report.time is None
    assert "99" in report.errors[0].message


def test_more_epochs_take_longer_in_proportion(two_steps: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    data = new_data(tiny_corpus, tmp_path, {"dish": "meal"})

    def middle(epochs: int) -> float:
        time = check(data, two_steps, sample=1, seconds=0.4, settings={"epochs": epochs}).time
        assert time is not None
        return (time.low + time.high) / 2

    assert middle(400) > 20 * middle(10)  # 40 times, in a quiet moment


def test_somebody_elses_checkpoint(tiny_encoder: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    labels = dict(enumerate(["O", "B-PER", "I-PER"]))
    stock = AutoModelForTokenClassification.from_pretrained(
        tiny_encoder, id2label=labels, num_labels=3, ignore_mismatched_sizes=True
    )
    stock.save_pretrained(tmp_path / "stock")
    AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(tmp_path / "stock")
    data = new_data(tiny_corpus, tmp_path / "data", {"person": "Person", "dish": "meal"})
    report = quick(data, tmp_path / "stock")
    assert report.plan is not None and report.plan.new == ("Person", "meal") and report.plan.kept == ("PER",)
    assert "similar to a known type" in kinds(report.findings)


def test_text_without_old_types_is_a_warning() -> None:
    from cfner.practice.check.old_types import text_findings

    facts = ModelFacts("m", "e", ("city",), 50, {"city": 0}, {}, {}, {}, {}, not_reminded=("city",))
    [finding] = text_findings(facts)
    assert finding.severity == "warning" and "city" in finding.message
    assert "`unlabelled`" in (finding.remedy or "") and "`replay`" in (finding.remedy or "")
    assert list(text_findings(ModelFacts("m", "e", (), 50, {}, {}, {}, {}, {}))) == []


def test_the_mentions_of_every_old_type_are_told() -> None:
    from cfner.practice.check.old_types import text_findings

    mentions = {f"type{number}": number for number in range(12)}
    facts = ModelFacts("m", "e", tuple(mentions), 50, mentions, {}, {}, {}, {}, not_reminded=tuple(mentions))
    found, absent = text_findings(facts)
    assert all(f"type{number} {number}" in found.message for number in range(1, 12))
    assert all(type_ in absent.message for type_ in mentions)


def test_sentences_longer_than_the_window(two_steps: Path, tmp_path: Path) -> None:
    draw = random.Random(0)
    words = [" ".join(draw.choice(["the", "river", "went"]) for _ in range(90)) for _ in range(3)]
    long = [sentence(f"stew {text}", (0, 1, "meal")) for text in words]
    report = quick(
        written(tmp_path, train=[*PLAIN, *long, Sentence(("x" * 90, "y"))], dev=long[:1]), two_steps
    )
    said = [f.message for f in report.findings if f.kind == "long sentences"]
    assert len(said) == 1 and said[0].startswith("4 training")
    assert "giant words" in kinds(report.findings)


# the command

runner = CliRunner()
app = typer.Typer()
app.command()(check_command)


def test_as_a_user_types_it(two_steps: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    data = new_data(tiny_corpus, tmp_path, {"city": "city", "dish": "meal\x1b[31m"})
    refused = runner.invoke(app, [str(data), "--model", str(two_steps), "--no-timing"])
    assert refused.exit_code == 1 and "error:" in refused.output and "\x1b[31m" not in refused.output
    assert refused.output.rstrip().splitlines()[-1].strip().startswith("cfner check ")
    options = ["--model", str(two_steps), "--old-labels", "ignore", "--no-timing"]
    fine = runner.invoke(app, [str(data), *options])
    assert fine.exit_code == 0 and "keeping animal" in " ".join(fine.output.split())
    last = fine.output.rstrip().splitlines()[-1].strip()
    assert last.startswith("cfner learn ") and last.endswith("--old-labels ignore")
    told = runner.invoke(app, [str(data), *options, "--json", "--epochs", "2"])
    assert json.loads(told.output)["plan"]["epochs"] == 2
    plain = runner.invoke(app, [str(data), "--types", " city , "])
    assert plain.exit_code == 0 and "city" in plain.output


# text without labels, and what old types claim


def test_old_types_in_the_data_and_in_the_unlabelled_text(
    two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    plain = [s for s in tiny_corpus.train if not s.types & {"animal", "city"}]
    data = written(tmp_path / "data", train=new_labels(plain, {"dish": "meal"}))
    alone = quick(data, two_steps)
    assert alone.model is not None and {"animal", "city"} <= set(alone.model.not_reminded)
    [warned] = [f for f in alone.findings if f.kind == "old types not in the text"]
    assert warned.severity == "warning" and "animal" in warned.message
    text = tmp_path / "every day.txt"
    text.write_text("\n".join(" ".join(s.words) for s in tiny_corpus.train if s not in plain))
    beside = quick(data, two_steps, unlabelled=[text])
    assert beside.model is not None and beside.model.unlabelled is not None and beside.plan is not None
    found = beside.model.unlabelled
    assert found.mentions["city"] >= 5 and "city" not in beside.model.not_reminded
    assert beside.plan.unlabelled_sentences == min(found.sentences, beside.plan.train_sentences)
    assert "old types in the unlabelled text" in kinds(beside.findings)
    assert shlex.split(beside.next_command)[-2:] == ["--unlabelled", str(text)]
    assert json.loads(json.dumps(beside.to_json()))["model"]["unlabelled"]["mentions"] == found.mentions
    unread = quick(data, two_steps, unlabelled=[text], settings={"method": "finetune"})
    assert unread.plan is not None and unread.plan.unlabelled_sentences == 0
    assert "unlabelled text not used" in kinds(unread.findings)
    with pytest.raises(ConfigError, match="none was given"):
        check(data, unlabelled=[text])


def test_more_text_takes_longer(two_steps: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    data = new_data(tiny_corpus, tmp_path, {"dish": "meal"})
    options = {"sample": 1, "seconds": 0.4, "settings": {"epochs": 200, "unlabelled_ratio": 20.0}}
    text = [f"the heron of oslo saw otter {number}" for number in range(1000)]
    short, long = (check(data, two_steps, unlabelled=given, **options).time for given in ([], text))
    assert (
        short is not None and long is not None and long.high > 3 * short.high
    )  # 15 times, in a quiet moment


def test_words_that_an_old_type_claims() -> None:
    from cfner.practice.check.old_types import claimed_words, text_findings

    def facts(claimed: int, of: int) -> ModelFacts:
        text = [sentence("new york rains", (0, 2, "place")) for _ in range(of // 2)]
        found = [[Span(1, 2, "city")] if number < claimed else [] for number in range(len(text))]
        claims = claimed_words(text, found, ["place"], ["city"])
        assert [(c.words, c.share, c.examples) for c in claims] == [(claimed, claimed / of, ("new york",))]
        seen = {"place": len(text)}
        return ModelFacts("m", "e", ("city",), len(text), {}, {"place": claimed}, {}, {}, seen, claims)

    [finding] = text_findings(facts(5, 100))  # by words it is 5 %, by mentions 10 %
    assert (finding.kind, finding.severity) == ("refines", "warning")
    assert "'place' (5%) for 'city'" in finding.message and "'new york'" in finding.message
    assert list(text_findings(facts(4, 60))) == []  # too few to say
    assert list(text_findings(facts(5, 120))) == []  # too small a share


def test_a_conflict_shows_its_words(two_steps: Path, tiny_corpus: Corpus, tmp_path: Path) -> None:
    report = quick(new_data(tiny_corpus, tmp_path, {"city": "place"}), two_steps)
    [conflict] = [f.message for f in report.findings if f.kind == "conflict"]
    assert "such as '" in conflict and "refines" not in kinds(report.findings)


def test_the_curve_says_whether_more_labels_would_help(
    two_steps: Path, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    data = new_data(tiny_corpus, tmp_path / "data", {"dish": "meal"}, keep_dev=False)
    drawing = tmp_path / "curve.svg"
    words = [str(data), "--model", str(two_steps), "--no-timing", "--epochs", "1"]
    done = runner.invoke(app, [*words, "--curve-picture", str(drawing), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["curve"]
    trained = [round(share * 2 / 3 * len(Corpus.read(data).train)) for share in (0.25, 0.5, 1)]
    assert found["sentences"] == trained
    assert found["gains"][0]["type"] == "meal" and found["gains"][0]["advice"] in get_args(Advice)
    assert "meal" in drawing.read_text() and drawing.read_text().startswith("<svg")
    again = runner.invoke(app, [*words, "--curve-picture", str(drawing)])
    assert "the file exists" in str(again.exception)
    without = runner.invoke(whole_app, ["check", str(data), "--curve"])
    assert "--model" in str(without.exception)


def test_the_advice_follows_from_the_interval_of_the_gain() -> None:
    assert advice_on(Interval(4, 1, 7)) == "label more"
    assert advice_on(Interval(0, -1, 1)) == "more of the same helps little"
    assert advice_on(Interval(3, -2, 8)) == "too early to tell"
