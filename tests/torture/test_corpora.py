"""Good and broken files in every format: read, repaired and counted, or refused with their place."""

from __future__ import annotations

import json
import re
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tags import labels_of, tags_from_spans
from cfner.corpus.writers import write_sentences
from cfner.errors import CorpusError
from cfner.tagger import ContinualTagger
from counts import tell, times
from reading import read_sentences

ALL = times(20_000, quick=1_000, short=120)
SHARES = {
    "conll": 0.3, "jsonl of tags": 0.2, "jsonl of texts": 0.2, "labelstudio": 0.15, "spacy": 0.13,
    "huggingface": 0.02,
}  # fmt: skip
LONG = times(100_000, quick=100_000, short=5_000)  # words of one sentence
SECONDS, MEGABYTES = 20.0, 600.0  # of the processor, for reading it; three times that for tagging it

Writer = Callable[[list[Sentence], Path], Path]

# -- good files ----------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["Ada", "saw", "New", "York", "!", "#tag", "1,250.50", "déjà", "中", "O'Brien", "👍", "e\u0301"]
)
TYPES = st.sampled_from(["PER", "LOC", "B-side", "O'", "x:y"])


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    words = draw(st.lists(WORDS, min_size=1, max_size=9))
    spans, at = [], 0
    while at < len(words):
        start = draw(st.integers(at, len(words)))
        end = draw(st.integers(start, len(words)))
        if start < end:
            spans.append(Span(start, end, draw(TYPES)))
        at = max(end, start) + 1
    return Sentence(tuple(words), tuple(spans))


def _with_text(sentence: Sentence) -> tuple[str, list[tuple[int, int, str]]]:
    """Words joined by blanks, and mentions as characters."""
    text, offsets = "", []
    for word in sentence.words:
        text += " " if text else ""
        offsets.append((len(text), len(text) + len(word)))
        text += word
    return text, [(offsets[s.start][0], offsets[s.end - 1][1], s.type) for s in sentence.spans]


def _conll(listed: list[Sentence], folder: Path) -> Path:
    path = folder / "f.conll"
    write_sentences(listed, path, overwrite=True)
    return path


def _jsonl_tags(listed: list[Sentence], folder: Path) -> Path:
    path = folder / "f.jsonl"
    records = [{"tokens": list(s.words), "tags": tags_from_spans(s.spans, len(s), "BIOES")} for s in listed]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def _jsonl_texts(listed: list[Sentence], folder: Path) -> Path:
    path = folder / "f.jsonl"
    texts = [_with_text(sentence) for sentence in listed]
    path.write_text("".join(json.dumps({"text": t, "spans": spans}) + "\n" for t, spans in texts))
    return path


def _labelstudio(listed: list[Sentence], folder: Path) -> Path:
    path = folder / "f.json"
    tasks = [
        {
            "id": number,
            "data": {"text": text},
            "annotations": [
                {"result": [
                    {"type": "labels", "value": {"start": a, "end": b, "labels": [t], "text": text[a:b]}}
                    for a, b, t in spans
                ]}
            ],
        }
        for number, (text, spans) in enumerate(map(_with_text, listed), start=1)
    ]  # fmt: skip
    path.write_text(json.dumps(tasks, indent=0))
    return path


def _spacy(listed: list[Sentence], folder: Path) -> Path:
    path = folder / "f.spacy"
    write_sentences(listed, path, overwrite=True)
    return path


def _huggingface(listed: list[Sentence], folder: Path) -> Path:
    import datasets

    datasets.disable_progress_bars()
    names = ["O", *labels_of(sorted({type_ for s in listed for type_ in s.types}), "BIO")]
    tags = [[names.index(tag) for tag in tags_from_spans(s.spans, len(s), "BIO")] for s in listed]
    features = datasets.Features(
        tokens=datasets.List(datasets.Value("string")),
        ner_tags=datasets.List(datasets.ClassLabel(names=names)),
    )
    table = datasets.Dataset.from_dict(
        {"tokens": [list(s.words) for s in listed], "ner_tags": tags}, features=features
    )
    path = folder / "dataset"
    shutil.rmtree(path, ignore_errors=True)
    table.save_to_disk(str(path))
    return path


WRITERS: dict[str, Writer] = {
    "conll": _conll,
    "jsonl of tags": _jsonl_tags,
    "jsonl of texts": _jsonl_texts,
    "labelstudio": _labelstudio,
    "spacy": _spacy,
    "huggingface": _huggingface,
}

# -- broken ones ---------------------------------------------------------------------------------------------

BYTES = [b"\0", b"\xff", b"\r", b"\n", b"\t", b" ", b"\xef\xbb\xbf", "\u00a0".encode()]
BYTES += [b'"', b"[", b"O", b"-", b"7"]
KINDS = ["insert", "drop", "cut", "line twice", "line lost", "crlf", "utf-16", "byte"]


@st.composite
def breakages(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Something that happens to a file."""
    kind = draw(st.sampled_from(KINDS))
    at, piece = draw(st.floats(0, 1)), draw(st.sampled_from(BYTES))

    def change(content: bytes) -> bytes:
        place = int(at * len(content))
        lines = content.splitlines(keepends=True)
        line = min(int(at * len(lines)), max(len(lines) - 1, 0))
        match kind:
            case "insert":
                return content[:place] + piece + content[place:]
            case "drop":
                return content[:place] + content[place + 1 :]
            case "cut":
                return content[:place]
            case "line twice":
                return b"".join([*lines[:line], *lines[line : line + 1], *lines[line:]])
            case "line lost":
                return b"".join([*lines[:line], *lines[line + 1 :]])
            case "crlf":
                return content.replace(b"\n", b"\r\n")
            case "utf-16":
                return content.decode("utf-8", "replace").encode("utf-16")
            case _:
                return content[:place] + bytes([int(at * 255)]) + content[place + 1 :]

    return change


def _damaged_file(path: Path) -> Path:
    """What to break: the file, or of a saved dataset its largest."""
    if path.is_file():
        return path
    return max((file for file in path.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)


# what is said of a file as a whole has no line
WHOLE = re.compile(
    "holds no (sentence|line|split)|not a list of tasks|not a readable DocBin|cannot be loaded"
    "|unknown file type|not valid JSON|cannot be read"
)
PLACE = re.compile(r":\d+|, task |, document |\[\w+\]")


def _outcome(path: Path, expected: list[Sentence] | None) -> str:
    try:
        found, report = read_sentences(path)
    except CorpusError as error:
        assert expected is None, f"a good file was refused: {error}"
        assert error.where is not None and error.where.startswith(str(path)), str(error)
        assert error.remedy, str(error)
        rest = error.where.removeprefix(str(path))
        assert PLACE.match(rest) or WHOLE.search(error.what), str(error)
        return "refused"
    assert report.tokens_read == report.tokens_used + report.tokens_reported
    assert report.tokens_used == sum(len(sentence) for sentence in found) > 0
    assert report.sentences == len(found)
    assert all(0 <= span.start < span.end <= len(s) for s in found for span in s.spans)
    if expected is not None:
        mentions = [[(_joined(s, x), x.type) for x in s.spans] for s in expected]
        assert [[(_joined(s, x), x.type) for x in s.spans] for s in found] == mentions
        assert [_joined(s, Span(0, len(s), "")) for s in found] == [
            _joined(s, Span(0, len(s), "")) for s in expected
        ]
        assert report.tokens_reported == 0
        return "read"
    return "repaired" if report.repairs else "read, though broken"


def _joined(sentence: Sentence, span: Span) -> str:
    """Words without what separates them: a text is cut into words by another rule than ours above."""
    return "".join(sentence.words[span.start : span.end])


@pytest.mark.parametrize("format_", SHARES)
def test_files_are_read_or_repaired_or_refused(
    format_: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write, outcomes = WRITERS[format_], Counter[str]()
    folder = tmp_path_factory.mktemp("files")

    @given(st.lists(sentences(), min_size=1, max_size=5), st.lists(breakages(), max_size=2))
    @settings(
        max_examples=max(3, int(ALL * SHARES[format_])),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    def check(listed: list[Sentence], broken: list[Callable[[bytes], bytes]]) -> None:
        path = write(listed, folder)
        target = _damaged_file(path)
        for change in broken:
            target.write_bytes(change(target.read_bytes()))
        outcomes[_outcome(path, None if broken else listed)] += 1

    check()
    assert outcomes["read"]
    tell(f"{format_}: {outcomes.total()} files: {dict(outcomes)}")


# -- one very long sentence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["conll", "jsonl of tags", "jsonl of texts", "labelstudio", "spacy"])
def test_a_sentence_of_100_000_words_is_read_in_time(format_: str, tmp_path: Path) -> None:
    words = tuple(f"word{n % 977}" for n in range(LONG))
    long = Sentence(words, tuple(Span(n, n + 2, "PER") for n in range(0, LONG, 10)))
    path = WRITERS[format_]([long], tmp_path)
    memory, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    [found], report = read_sentences(path)
    seconds = time.process_time() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert found.words == words and len(found.spans) == LONG // 10
    assert report.tokens_used == LONG
    assert seconds < SECONDS and grown < MEGABYTES
    tell(f"{format_}: {LONG:,} words in one sentence read in {seconds:.1f} s, {grown:.0f} MB more")


def test_a_sentence_of_100_000_words_is_tagged_in_time(two_steps: Path) -> None:
    words = ("ada", "saw", "the", "heron", "in", "oslo", "today") * (LONG // 7 + 1)
    tagger = ContinualTagger.load(two_steps)
    memory, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = tagger.predict(Sentence(words[:LONG]))
    seconds = time.process_time() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    assert found.spans and max(span.end for span in found.spans) > LONG - 100
    assert seconds < 3 * SECONDS and grown < MEGABYTES
    tell(f"{LONG:,} words in one sentence tagged in {seconds:.1f} s, {grown:.0f} MB more")
