"""Readers and writers: round trips, token conservation, and every kind of bad input."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cfner.cli.main import app
from cfner.corpus.corpus import Corpus
from cfner.corpus.formats import formats, writable_formats
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tags import SCHEMES, Scheme, TagError
from cfner.corpus.tokenise import character_spans, sentence_from_characters, split_words
from cfner.corpus.writers import write_files, write_sentences
from cfner.errors import CorpusError
from cfner.interop.text_stream import unlabelled_text
from reading import read_sentences

quick = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

ODD = "\u2028\x85\x0b\x0c\x1c\u00a0\u200b\u0301\u200d#'’-.,1aé中か👍"
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r\ufeff") | st.sampled_from(
    ODD
)
words = st.text(characters, min_size=1, max_size=5).filter(
    lambda word: word == word.strip() and word != "-DOCSTART-"
)
types = st.sampled_from(["PER", "LOC", "product-car"])


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    tokens = draw(st.lists(words, min_size=1, max_size=6))
    spans, position = [], 0
    while position < len(tokens) and draw(st.booleans()):
        start = draw(st.integers(position, len(tokens) - 1))
        end = draw(st.integers(start + 1, len(tokens)))
        spans.append(Span(start, end, draw(types)))
        position = end + 1  # never touching, so that every scheme can say it
    return Sentence(tuple(tokens), tuple(spans))


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]]]:
    """A text and disjoint mentions that neither begin nor end with a blank."""
    text = draw(st.text(st.sampled_from(" \nab1.,'s-" + ODD), max_size=30))
    spans, position = [], 0
    while position < len(text) and draw(st.booleans()):
        start = draw(st.integers(position, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        if text[start:end] == text[start:end].strip():
            spans.append((start, end, draw(types)))
        position = end
    return text, spans


def bare(sentence: Sentence) -> tuple[Any, ...]:
    return sentence.words, sentence.spans, sentence.text, sentence.offsets


def balanced(report: ReadReport) -> bool:
    return report.tokens_read == report.tokens_used + report.tokens_reported


def read_bytes(tmp_path: Path, content: bytes, name: str = "f.conll", **options: Any) -> Any:
    path = tmp_path / name
    path.write_bytes(content)
    return read_sentences(path, **options)


# ---------------------------------------------------------------- words and characters


@given(texts())
@quick
def test_words_cover_the_text_exactly(case: tuple[str, list[tuple[int, int, str]]]) -> None:
    text, spans = case
    edges = {edge for start, end, _ in spans for edge in (start, end)}
    ranges = split_words(text, edges)
    covered = [position for start, end in ranges for position in range(start, end)]
    assert covered == [position for position, character in enumerate(text) if not character.isspace()]
    assert not any(start < edge < end for start, end in ranges for edge in edges)


@given(texts())
@quick
def test_character_spans_survive_the_round_trip(case: tuple[str, list[tuple[int, int, str]]]) -> None:
    text, spans = case
    sentence, repairs = sentence_from_characters(text, reversed(spans))
    assert character_spans(sentence) == spans
    assert repairs == []
    assert sentence.offsets is not None
    assert list(sentence.words) == [text[start:end] for start, end in sentence.offsets]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. O'Brien's 1,250.50 mg-dose", "Dr|.|O'Brien|'s|1,250.50|mg|-|dose"),
        ("don’t 3rd x_y 5.", "don’t|3rd|x_y|5|."),
        ("हिन्दी भाषा", "हिन्दी|भाषा"),
        ("北京hello", "北|京|hello"),
        ("cafe\u0301s", "cafe\u0301s"),
    ],
)
def test_words_by_example(text: str, expected: str) -> None:
    assert [text[start:end] for start, end in split_words(text)] == expected.split("|")


# ---------------------------------------------------------------- round trips through files


@given(
    st.lists(sentences(), min_size=1, max_size=4),
    st.sampled_from(SCHEMES),
    st.sampled_from(["conll", "jsonl"]),
)
@quick
def test_tagged_sentences_survive_writing_and_reading(
    tmp_path: Path, written: list[Sentence], scheme: Scheme, format: str
) -> None:
    path = tmp_path / f"f.{format}"
    write_sentences(written, path, scheme=scheme, overwrite=True)
    read, report = read_sentences(path)
    assert [bare(sentence) for sentence in read] == [bare(sentence) for sentence in written]
    assert balanced(report)
    assert report.tokens_read == sum(len(sentence) for sentence in written)


@given(st.lists(texts(), min_size=1, max_size=3))
@quick
def test_texts_survive_writing_and_reading(
    tmp_path: Path, cases: list[tuple[str, list[tuple[int, int, str]]]]
) -> None:
    written = [sentence_from_characters(text, spans)[0] for text, spans in cases]
    written = [sentence for sentence in written if len(sentence)] or [sentence_from_characters("a", [])[0]]
    path = tmp_path / "f.jsonl"
    write_sentences(written, path, overwrite=True)
    assert [bare(sentence) for sentence in read_sentences(path)[0]] == [
        bare(sentence) for sentence in written
    ]


@given(st.lists(texts(), min_size=1, max_size=2), st.lists(sentences(), min_size=1, max_size=2))
@settings(quick, max_examples=30)
def test_docbin_round_trip(
    tmp_path: Path, cases: list[tuple[str, list[tuple[int, int, str]]]], tagged: list[Sentence]
) -> None:
    pytest.importorskip("spacy")
    cut = [sentence_from_characters(text, spans)[0] for text, spans in cases]
    written = [sentence for sentence in cut if len(sentence)] + tagged
    path = tmp_path / "f.spacy"
    write_sentences(written, path, overwrite=True)
    read, report = read_sentences(path)
    assert balanced(report)
    assert [(s.words, s.spans) for s in read] == [(s.words, s.spans) for s in written]
    for old, new in zip(written, read, strict=True):
        assert new.text == (" ".join(old.words) if old.text is None else old.text)
    again = tmp_path / "f.jsonl"  # spaCy's words are not always ours; JSON lines keep them all the same
    write_sentences(read, again, overwrite=True)
    assert [bare(s) for s in read_sentences(again)[0]] == [bare(s) for s in read]


def test_sources_name_file_and_line(tmp_path: Path) -> None:
    read, _ = read_bytes(tmp_path, b"a\tO\n\n\nb\tO\n")
    assert [sentence.source for sentence in read] == [f"{tmp_path}/f.conll:1", f"{tmp_path}/f.conll:4"]


def test_writing_is_whole_and_never_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "f.conll"
    write_sentences([Sentence(("a",))], path)
    with pytest.raises(CorpusError, match="the file exists"):
        write_sentences([Sentence(("b",))], path)
    for format in writable_formats():
        with pytest.raises((CorpusError, AttributeError)):
            write_sentences([Sentence(("c",)), None], path, format=format, overwrite=True)  # type: ignore[list-item]
    assert path.read_text() == "a\tO\n\n"
    with pytest.raises(CorpusError, match="cannot be written in a column"):
        write_sentences([Sentence(("a", "b\tc"))], path, overwrite=True)
    with pytest.raises(TagError, match="IO cannot express"):
        touching = Sentence(("a", "b"), (Span(0, 1, "X"), Span(1, 2, "X")))
        write_sentences([touching], path, scheme="IO", overwrite=True)
    with pytest.raises(CorpusError, match="cannot be written"):
        write_sentences([Sentence(("a",))], path / "below" / "f.conll")
    assert [file.name for file in path.parent.iterdir()] == ["f.conll"]


def test_a_file_that_is_replaced_hands_on_its_permissions_and_links_stay(tmp_path: Path) -> None:
    private, link = tmp_path / "there" / "f.conll", tmp_path / "link.conll"
    write_sentences([Sentence(("a",))], private)
    private.chmod(0o600)
    link.symlink_to(private)
    write_sentences([Sentence(("b",))], link, overwrite=True)
    assert link.is_symlink()
    assert private.read_text() == "b\tO\n\n"
    assert private.stat().st_mode & 0o777 == 0o600
    both = {path: [Sentence(("c",))] for path in (private, link)}
    with pytest.raises(CorpusError, match="the same file"):
        write_files(both, overwrite=True)
    assert private.read_text() == "b\tO\n\n"
    assert [file.name for file in private.parent.iterdir()] == ["f.conll"]


@pytest.mark.parametrize(
    ("word", "type_", "message"),
    [
        ("-DOCSTART-", "X", "mark between documents"),
        ("#columns", "X", "names of the columns"),
        ("a", "§", "no letter or digit"),
        ("\ufeff", "X", "cannot be written in a column"),
        ("\ufeff-DOCSTART-", "X", "mark between documents"),
    ],
)
def test_columns_that_would_be_read_otherwise_are_not_written(
    tmp_path: Path, word: str, type_: str, message: str
) -> None:
    with pytest.raises(CorpusError, match=rf"sentence 2: .*{message}.*jsonl"):
        write_sentences([Sentence(("#b",)), Sentence((word,), (Span(0, 1, type_),))], tmp_path / "f.conll")
    assert not list(tmp_path.iterdir())


def test_a_word_like_a_comment_stands_after_the_first_other_word(tmp_path: Path) -> None:
    written = [Sentence(("#b", "a", "#columns")), Sentence(("#columns",))]
    write_sentences(written, tmp_path / "f.conll")
    assert [s.words for s in read_sentences(tmp_path / "f.conll")[0]] == [s.words for s in written]


# ---------------------------------------------------------------- conservation on broken files

conll_cells = st.sampled_from(
    ["a", "#", "#b", " ", "\u00a0", "", "c\u00a0d", "-DOCSTART-", "\ufeff", "x\u2028y", "# z"]
)
conll_tags = st.sampled_from(["O"] * 4 + ["B-X", "I-X", "I-Y", "B-Y", "I-X ", "E-X", "L-X", "B-", "X", ""])
conll_lines = st.lists(
    st.builds(
        lambda word, tag, end: f"{word}\t{tag}{end}", conll_cells, conll_tags, st.sampled_from(["\n", "\r\n"])
    )
    | st.sampled_from(["\n", "\r\n", " \n", "# id 7\n", "a\n", "a\tb\tO\n", "-DOCSTART- -X- O\n"]),
    max_size=8,
)


@given(conll_lines)
@settings(quick, max_examples=200)
def test_conll_conserves_tokens_or_refuses_with_place_and_remedy(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "f.conll"
    path.write_bytes("".join(lines).encode())
    try:
        read, report = read_sentences(path)
    except CorpusError as error:
        assert error.where is not None
        assert error.where.startswith(str(path))
        assert error.remedy
        return
    assert balanced(report)
    assert report.tokens_used == sum(len(sentence) for sentence in read)
    skipped = ("comment line", "line with the names of the columns")
    content = [line for line in lines if line.lstrip("\ufeff").strip()]
    assert report.tokens_read == len(content) - sum(report.repairs[kind] for kind in skipped)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.sampled_from(["O", "B-X", "a b", " ", "\ud800", "\0", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["start", "end", "label"]), inner)
    ),
    max_leaves=6,
)
good_tagged = st.integers(0, 3).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "tokens": st.lists(st.sampled_from(["a", "b c", " ", "\u00a0d"]), min_size=n, max_size=n),
            "tags": st.lists(st.sampled_from(["O", "B-X", "I-X", "I-Y "]), min_size=n, max_size=n),
        },
        optional={"answer": st.sampled_from(["accept", "reject"])},
    )
)
good_text = st.fixed_dictionaries(
    {
        "text": st.sampled_from(["Ada lives", " x ", "", "中a"]),
        "spans": st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.just("X")), max_size=2),
    }
)
any_record = st.dictionaries(
    st.sampled_from(["tokens", "tags", "text", "spans", "offsets"]), json_values, max_size=4
)


def check_conserved(path: Path) -> None:
    try:
        read, report = read_sentences(path)
    except CorpusError as error:
        assert error.where is not None
        assert error.where.startswith(str(path))
        assert error.remedy
        return
    assert balanced(report)
    assert report.sentences == len(read) > 0
    assert report.tokens_used == sum(len(sentence) for sentence in read)


@given(st.lists(good_tagged, max_size=4) | st.lists(good_text, max_size=4) | st.lists(any_record, max_size=3))
@settings(quick, max_examples=200)
def test_jsonl_conserves_tokens_or_refuses(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    check_conserved(path)


ls_results = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["labels", "choices"]),
            "value": st.fixed_dictionaries(
                {"start": st.integers(-1, 9), "end": st.integers(0, 9)},
                optional={
                    "labels": st.lists(st.sampled_from(["X", "Y"]), max_size=2),
                    "text": st.sampled_from(["Ada", "b"]),
                },
            ),
        }
    )
    | json_values,
    max_size=2,
)
ls_tasks = st.lists(
    st.fixed_dictionaries(
        {
            "data": st.fixed_dictionaries({"text": st.sampled_from(["Ada b", "👍 Ada", "", "b"])}),
            "annotations": st.lists(
                st.fixed_dictionaries({"result": ls_results, "was_cancelled": st.booleans()}), max_size=2
            ),
        }
    )
    | json_values,
    max_size=3,
)


@given(ls_tasks)
@settings(quick, max_examples=150)
def test_label_studio_conserves_tokens_or_refuses(tmp_path: Path, tasks: list[Any]) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    check_conserved(path)


@given(st.binary(max_size=60), st.sampled_from(["f.conll", "f.jsonl", "f.json", "f.spacy"]))
@settings(quick, max_examples=200)
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes, name: str) -> None:
    if name.endswith("spacy"):
        pytest.importorskip("spacy")
    path = tmp_path / name
    path.write_bytes(content)
    check_conserved(path)


# ---------------------------------------------------------------- bad input, one by one

REFUSED = [
    ("wrong column count", b"a\tO\nb\n", 2, "1 column where the file has 2"),
    ("too many columns", b"a O\nb c O\n", 2, "3 columns where the file has 2"),
    ("a word alone", b"a\nb\n", 1, "a word without a tag"),
    ("mixed schemes", b"a\tS-X\nb\tU-X\n", 2, "mix two schemes"),
    ("bare and prefixed", b"a\tPER\n\nb\tB-PER\n", 3, "mix two schemes"),
    ("no type", b"a\tO\nb\tB-\n", 2, "names no type"),
    ("no tag", b"a\tO\nb\t\n", 2, "names no type"),
    ("unknown prefix", b"a\tO\nb\tQ-PER\n", 2, "unknown prefix"),
    ("not UTF-8", b"a\tO\ncaf\xe9\tO\n", 2, "not valid UTF-8: byte 0xe9 at byte 4"),
    ("NUL", b"a\tO\nb\0\tO\n", 2, "NUL"),
    ("UTF-16", "a\tO\n".encode("utf-16"), 1, "UTF-16"),
    ("old Mac lines", b"a\tO\rb\tO\r", 1, "carriage return"),
    ("NBSP as separator", "a O\nb\u00a0O\n".encode(), 2, "no-break space"),
    ("NBSP shifting columns", "New\u00a0York B-LOC\nin New York O\n".encode(), 2, "4 columns"),
    ("hashtag without tag", b"a\tO\n#tag\n", 2, "1 column"),
]


@pytest.mark.parametrize(("name", "content", "line", "message"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refused(tmp_path: Path, name: str, content: bytes, line: int, message: str) -> None:
    with pytest.raises(CorpusError, match=message) as caught:
        read_bytes(tmp_path, content)
    assert caught.value.where == f"{tmp_path}/f.conll:{line}"
    assert caught.value.remedy


REPAIRED = [
    ("BOM", b"\xef\xbb\xbfa\tO\n", ["a"], "byte order mark", 1, 0),
    ("BOM of a joined file", b"a\tO\n\xef\xbb\xbfb\tO\n", ["a", "b"], "byte order mark", 2, 0),
    ("CRLF", b"a\tO\r\n\r\nb\tB-X\r\n", ["a", "b"], "CRLF", 1, 0),
    ("NBSP at the end", "a\u00a0\tO\n".encode(), ["a"], "trimmed from a word", 1, 0),
    ("NBSP after the tag", "a O\u00a0\n".encode(), ["a"], "trimmed from a tag", 1, 0),
    ("NBSP inside", "New\u00a0York B-X\n".encode(), ["New\u00a0York"], "no-break space", 1, 0),
    ("blank word", b"a\tO\n \tO\nb\tO\n", ["a", "b"], "word of whitespace", 2, 1),
    ("line of spaces", b"a\tO\n \t\nb\tO\n", ["a", "b"], "whitespace-only line", 2, 0),
    ("orphan", b"a\tB-X\n\nb\tI-X\nc\tO\nd\tB-X\n", ["a", "b", "c", "d"], "inside tag", 3, 0),
    ("document marker", b"-DOCSTART- -X- O\n\na B O\nb C O\n", ["a", "b"], "DOCSTART", 1, 1),
    ("comment", b"# id 7 domain=en\na\t_\tO\n", ["a"], "comment", 1, 0),
    ("comment in blanks", b"# id 7\na x O\n", ["a"], "comment", 1, 0),
]


@pytest.mark.parametrize(
    ("name", "content", "expected", "kind", "line", "lost"), REPAIRED, ids=[case[0] for case in REPAIRED]
)
def test_repaired_and_counted(
    tmp_path: Path, name: str, content: bytes, expected: list[str], kind: str, line: int, lost: int
) -> None:
    read, report = read_bytes(tmp_path, content)
    assert [word for sentence in read for word in sentence.words] == expected
    assert report.tokens_reported == lost
    (found,) = [each for each in report.repairs if kind in each]
    assert report.places[found][0] == f"{tmp_path}/f.conll:{line}"


@pytest.mark.parametrize("name", ["f.conll", "f.jsonl", "f.json"])
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(CorpusError, match=r"no sentence to use|has no line") as caught:
        read_bytes(tmp_path, content, name)
    assert caught.value.where == str(tmp_path / name)


def test_unknown_file_types_and_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"unknown file type '\.docx'.*\.conll"):
        read_bytes(tmp_path, b"a\tO\n", "f.docx")
    assert len(read_bytes(tmp_path, b"a\tO\n", "f.docx", format="conll")[0]) == 1
    with pytest.raises(CorpusError, match=r"unknown format 'conl'\. Did you mean 'conll'"):
        read_bytes(tmp_path, b"a\tO\n", "f.docx", format="conl")
    with pytest.raises(CorpusError, match="no such file"):
        read_sentences(tmp_path / "absent.conll")
    assert set(formats()) == {"conll", "gliner", "huggingface", "jsonl", "labelstudio", "spacy", "spacy-v2"}


# ---------------------------------------------------------------- CoNLL by example


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n\n\n"])
def test_the_last_sentence_is_kept(tmp_path: Path, end: str) -> None:
    read, _ = read_bytes(tmp_path, f"a\tO\n\nb\tB-X{end}".encode())
    assert [sentence.words for sentence in read] == [("a",), ("b",)]


def test_unusual_separators_do_not_count_as_lines(tmp_path: Path) -> None:
    odd = "a\u2028b\x0bc\x85d\x0ce\x1cf"
    content = f"{odd}\tO\nx\tB-\n".encode()
    with pytest.raises(CorpusError, match=r"f\.conll:2"):
        read_bytes(tmp_path, content)
    assert read_bytes(tmp_path, content[:-6])[0][0].words == (odd,)


def test_columns_by_name_number_and_header(tmp_path: Path) -> None:
    rows = b"Ada NNP B-NP B-PER\nran VBD O O\n"
    headers = [b"", b"# columns: token pos chunk ner\n", b"# global.columns = FORM XPOS CHUNK NER\n"]
    for content in [*(header + rows for header in headers), b"Token Pos Chunk NER\n" + rows]:
        (sentence,), report = read_bytes(tmp_path, content)
        assert sentence.words == ("Ada", "ran")
        assert sentence.types == {"PER"}
        assert report.tokens_read == 2
    named = headers[1] + rows
    assert read_bytes(tmp_path, named, tag_column="chunk")[0][0].types == {"NP"}
    assert read_bytes(tmp_path, rows, tag_column="2", token_column=1)[0][0].words == ("NNP", "VBD")
    for options, message in [
        ({"tag_column": "nerr"}, "Did you mean 'ner'"),
        ({"tag_column": 4}, "no column 4"),
    ]:
        with pytest.raises(CorpusError, match=message):
            read_bytes(tmp_path, named, **options)
    with pytest.raises(CorpusError, match="no line names the columns"):
        read_bytes(tmp_path, rows, tag_column="ner")


def test_words_that_begin_with_a_hash_are_no_comments(tmp_path: Path) -> None:
    read, report = read_bytes(tmp_path, b"# note\n#one\tO\n#\tO\nx\tB-X\n# two words\n#\tI-X\n")
    assert [sentence.words for sentence in read] == [("#one", "#", "x", "#")]
    assert report.repairs["comment line"] == 2
    in_blanks, _ = read_bytes(tmp_path, b"# newdoc\n# PER\nx PER\n# O\n")
    assert [sentence.words for sentence in in_blanks] == [("#", "x", "#")]


def test_large_files_are_read_in_linear_time(tmp_path: Path) -> None:
    read, report = read_bytes(tmp_path, b"a\tO\n" * 30_000 + b"\n" + b"b\tB-X\n\n" * 10_000)
    assert (len(read), report.tokens_used) == (10_001, 40_000)


# ---------------------------------------------------------------- JSON by example


def test_jsonl_shapes(tmp_path: Path) -> None:
    span_shapes = [
        {"start": 0, "end": 3, "label": "PER"},
        {"start": 0, "end": 3, "type": "PER"},
        [0, 3, "PER"],
    ]
    for span in span_shapes:
        line = json.dumps({"text": "Ada ran", "spans": [span]}).encode()
        (sentence,), report = read_bytes(tmp_path, line, "f.jsonl")
        assert (sentence.words, sentence.spans) == (("Ada", "ran"), (Span(0, 1, "PER"),))
        assert report.scheme is None
    numbered = b'{"tokens": ["Ada"], "ner_tags": [1]}\n'
    with pytest.raises(CorpusError, match="no list of labels"):
        read_bytes(tmp_path, numbered, "f.jsonl")
    assert read_bytes(tmp_path, numbered, "f.jsonl", labels=["O", "B-PER"])[0][0].types == {"PER"}
    other = b'{"body": "Ada ran", "marks": [[0, 3, "PER"]]}\n'
    (sentence,), _ = read_bytes(tmp_path, other, "f.json", token_column="body", tag_column="marks")
    assert sentence.types == {"PER"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"tokens": ["a"], "tags": []}, "1 words but 0 tags"),
        ({"tokens": ["a"], "tags": ["B-"]}, "names no type"),
        ({"tokens": "a", "tags": ["O"]}, "not a list of words"),
        ({"tokens": ["a"], "spans": []}, "neither words and tags nor"),
        ({"text": "Ada", "spans": [[0, 4, "X"]]}, "not inside its text of 3 characters"),
        ({"text": "Ada", "spans": [[0, 2, "X"], [1, 3, "Y"]]}, "overlap"),
        ({"text": "Ada", "spans": [[0, 3, "X"], [1, 2, "Y"]]}, "overlap"),
        ({"text": "Ada", "spans": [[0, 3, ""]]}, "must have a start, an end and a type"),
        ({"text": "A\0a", "spans": []}, "NUL"),
        ({"text": "A\ud800", "spans": []}, "surrogate"),
        ({"text": "a b", "spans": [[0, 3, "X"]], "offsets": [[0, 9]]}, "offsets of the words are wrong"),
        ({"text": "a b", "spans": [[0, 3, "X"]], "offsets": [[0, 1]]}, "begins or ends between"),
    ],
)
def test_jsonl_refused(tmp_path: Path, record: dict[str, Any], message: str) -> None:
    with pytest.raises(CorpusError, match=message) as caught:
        read_bytes(tmp_path, b"\n" + json.dumps(record).encode(), "f.jsonl")
    assert str(caught.value.where).startswith(f"{tmp_path}/f.jsonl:2")
    assert caught.value.remedy


def test_jsonl_repairs(tmp_path: Path) -> None:
    record = {"text": " Ada ran", "spans": [[0, 5, "X"], [0, 1, "Y"], [1, 4, "X"]]}
    rejected = {"text": "no good", "spans": [], "answer": "reject"}
    lines = "\n".join(json.dumps(each) for each in (record, rejected))
    (sentence,), report = read_bytes(tmp_path, lines.encode(), "f.jsonl")
    assert character_spans(sentence) == [(1, 4, "X")]
    assert set(report.repairs) == {
        "whitespace trimmed from the ends of a mention",
        "mention of whitespace only, dropped",
        "mention given twice, kept once",
        "record not accepted by its annotator, left out",
    }
    assert (report.tokens_used, report.tokens_reported) == (2, 2)


@pytest.mark.parametrize("answer", [[], {}, None, "accept"])
def test_any_other_answer_is_no_rejection(tmp_path: Path, answer: object) -> None:
    record = {"text": "Ada ran", "spans": [], "answer": answer}
    (sentence,), _ = read_bytes(tmp_path, json.dumps(record).encode(), "f.jsonl")
    assert sentence.words == ("Ada", "ran")


@pytest.mark.parametrize(
    ("text", "spans", "offsets", "trimmed"),
    [
        (" a b", [[0, 2, "X"]], [[0, 2], [3, 4]], 1),  # a blank begins the word
        ("a b", [[0, 1, "X"], [2, 3, "X"]], [[0, 3]], 0),  # two mentions cut it at its blank
    ],
)
def test_no_word_is_of_blanks(tmp_path: Path, text: str, spans: Any, offsets: Any, trimmed: int) -> None:
    record = {"text": text, "spans": spans, "offsets": offsets}
    (sentence,), report = read_bytes(tmp_path, json.dumps(record).encode(), "f.jsonl")
    assert sentence.words == ("a", "b")
    assert report.repairs["whitespace trimmed from a word"] == trimmed
    assert balanced(report)


def test_broken_json_names_the_line(tmp_path: Path) -> None:
    for name, content in (("f.jsonl", b'{"tokens": [], "tags": []}\n{oops\n'), ("f.json", b'[\n{"data": }]')):
        with pytest.raises(CorpusError, match=rf"{name}:2: not valid JSON"):
            read_bytes(tmp_path, content, name)


def task(text: str, *spans: tuple[int, int, str, str]) -> dict[str, Any]:
    results = [
        {"type": "labels", "value": {"start": start, "end": end, "text": quoted, "labels": [label]}}
        for start, end, quoted, label in spans
    ]
    return {"id": 7, "data": {"text": text}, "annotations": [{"result": results}]}


def test_label_studio(tmp_path: Path) -> None:
    unannotated = {"data": {"text": "not yet"}, "annotations": []}
    twice = task("Bo", (0, 2, "Bo", "PER"))
    twice["annotations"] *= 2
    # A browser counts the emoji as two, so Ada is at 3-6 there and at 2-5 here.
    tasks = [task("👍 Ada ran", (3, 6, "Ada", "PER")), unannotated, twice]
    read, report = read_bytes(tmp_path, json.dumps(tasks).encode(), "f.json")
    assert [character_spans(sentence) for sentence in read] == [[(2, 5, "PER")], [(0, 2, "PER")]]
    assert (report.format, report.tokens_reported) == ("labelstudio", 2)
    assert len(report.repairs) == 3
    with pytest.raises(CorpusError, match="task 7: the span 0-3 quotes 'Bob', but its text reads 'Ada'"):
        read_bytes(tmp_path, json.dumps([task("Ada", (0, 3, "Bob", "PER"))]).encode(), "f.json")
    with pytest.raises(CorpusError, match="not a task"):
        read_bytes(tmp_path, b'[{"data": {"text": "a"}}]', "f.json")
    with pytest.raises(CorpusError, match="no text under 'text'"):
        read_bytes(tmp_path, b'[{"data": {"body": "a"}, "annotations": []}]', "f.json")


def test_lists_of_spacy_v2(tmp_path: Path) -> None:
    long = ["so " * 50_000 + "Ada", {"entities": [[150_000, 150_003, "PER"]]}]  # a first item of many blocks
    items = [
        long,
        ["Bo ran to Rome", {"entities": [[10, 14, "LOC"], [0, 2, "PER"]], "cats": {}}],
        ["no", {"entities": []}],
    ]
    read, report = read_bytes(tmp_path, json.dumps(items).encode(), "f.json")
    assert report.format == "spacy-v2"
    spans = [[(150_000, 150_003, "PER")], [(0, 2, "PER"), (10, 14, "LOC")], []]
    assert [character_spans(sentence) for sentence in read] == spans
    for wrong in (["Ada", {}], ["Ada"], ["Ada", [[0, 3, "PER"]]], {"text": "Ada"}):
        with pytest.raises(
            CorpusError, match=r'f\.json, item 2: not a text with its entities\. Write \["Ada'
        ):
            read_bytes(tmp_path, json.dumps([items[1], wrong]).encode(), "f.json")
    with pytest.raises(CorpusError, match=r"item 1: the mention 0-9 \(PER\) is not inside its text"):
        read_bytes(tmp_path, b'[["Ada", {"entities": [[0, 9, "PER"]]}]]', "f.json")


@pytest.mark.parametrize("name", ["f.json", "f.jsonl"])
def test_gliner_counts_the_last_word_in(tmp_path: Path, name: str) -> None:
    items = [
        {
            "ner": [[3, 3, "city"], [0, 1, "person"], [3, 3, "city"]],
            "tokenized_text": ["Ada", "Byron", "left", "Rome"],
        },
        {"tokenized_text": ["so", " ", "what"], "ner": []},
    ]
    lines = name.endswith("l")
    content = "\n".join(map(json.dumps, items)) if lines else json.dumps(items)
    read, report = read_bytes(tmp_path, content.encode(), name)
    assert (report.format, report.scheme, report.tokens_reported) == ("gliner", None, 1)
    assert read[0].spans == (Span(0, 2, "person"), Span(3, 4, "city"))
    assert report.repairs["mention given twice, kept once"] == 1
    assert read[1].words == ("so", "what")


@pytest.mark.parametrize(
    ("mentions", "message"),
    [
        ([[0, 2, "x"]], r"the mention 0-2 \(x\) is not inside its 2 words\. .*the last word belongs"),
        ([[0, 1, "x"], [1, 1, "y"]], r"the mentions 0-1 \(x\) and 1-1 \(y\) overlap"),
        ([[0, 1]], "first word, last word, type"),
        ([[True, 1, "x"]], "first word, last word, type"),
        ({}, "'ner' not a list of mentions"),
    ],
)
def test_gliner_refused(tmp_path: Path, mentions: object, message: str) -> None:
    item = {"tokenized_text": ["Ada", "ran"], "ner": mentions}
    with pytest.raises(CorpusError, match=rf"f\.json, item 1: .*{message}"):
        read_bytes(tmp_path, json.dumps([item]).encode(), "f.json")


def test_a_list_of_records_is_read_as_their_lines_are(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"text": "Ada ran", "entities": [{"start": 0, "end": 3, "label": "PER"}]},
        {"tokens": ["Ada", "ran"], "tags": ["B-PER", "O"]},
    ]
    for record in records:
        (sentence,), report = read_bytes(tmp_path, json.dumps([record]).encode(), "f.json")
        assert (report.format, sentence.spans) == ("jsonl", (Span(0, 1, "PER"),))
    with pytest.raises(CorpusError, match=r"item 1: the record has neither .* its fields are: text"):
        read_bytes(tmp_path, b'[{"text": "a"}]', "f.json")


json_lists = st.lists(
    st.tuples(st.sampled_from(["Ada b", ""]), st.dictionaries(st.just("entities"), json_values, max_size=1))
    | st.dictionaries(st.sampled_from(["tokenized_text", "ner"]), json_values, max_size=2)
    | st.fixed_dictionaries({"tokenized_text": st.lists(words, max_size=3), "ner": json_values})
    | json_values,
    max_size=3,
)


@given(json_lists)
@settings(quick, max_examples=150)
def test_any_json_list_conserves_tokens_or_is_refused(tmp_path: Path, items: list[Any]) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps(items), encoding="utf-8")
    check_conserved(path)


# ---------------------------------------------------------------- spaCy and Hugging Face


def test_docbin_documents_without_annotation_are_reported(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    labelled = nlp.make_doc("Ada  ran")  # two blanks: the second is a token of its own
    labelled.set_ents([spacy.tokens.Span(labelled, 0, 1, label="PER")], default="outside")
    path = tmp_path / "f.spacy"
    spacy.tokens.DocBin(docs=[labelled, nlp.make_doc("not yet")]).to_disk(path)
    (sentence,), report = read_sentences(path)
    assert (sentence.words, sentence.spans) == (("Ada", "ran"), (Span(0, 1, "PER"),))
    assert (report.tokens_read, report.tokens_used, report.tokens_reported) == (5, 2, 3)


def test_huggingface_folders(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    names = ["O", "B-PER", "I-PER"]
    features = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("string")),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=names)),
        }
    )
    rows = {"tokens": [["Ada", "Byron", "ran"], ["No", " "]], "ner_tags": [[1, 2, 0], [0, 0]]}
    split = datasets.Dataset.from_dict(rows, features=features)
    folder = tmp_path / "saved"
    datasets.DatasetDict({"train": split, "validation": split, "extra": split}).save_to_disk(str(folder))
    corpus = Corpus.read(folder)
    assert corpus.train[0].spans == corpus.dev[0].spans == (Span(0, 2, "PER"),)
    assert corpus.test == ()
    assert (corpus.report.format, corpus.report.scheme) == ("huggingface", "BIO")
    assert (corpus.report.tokens_read, corpus.report.tokens_used) == (15, 8)
    assert balanced(corpus.report)
    assert corpus.report.repairs["split 'extra' left out"] == 2

    split.save_to_disk(str(tmp_path / "one"))
    read, report = read_sentences(tmp_path / "one")
    assert read == tuple(Corpus.read(tmp_path / "one").train)
    assert balanced(report)
    with pytest.raises(CorpusError, match="cannot be loaded"):
        Corpus.read(tmp_path, format="huggingface")


def test_a_damaged_record_of_a_dataset_is_named(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"tokens": [["Ada"], ["Lovelace"]], "tags": [["O"], ["O"]]}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "d"))
    (table,) = (tmp_path / "d").glob("*.arrow")
    table.write_bytes(table.read_bytes().replace(b"Lovelace", b"Love\xff\xfece"))
    with pytest.raises(CorpusError, match=r"\[train\]:2: the record cannot be read \(UnicodeDecodeError"):
        Corpus.read(tmp_path / "d")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "spacy", None)
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(Exception, match=r"pip install .*\[spacy\]'"):
        read_bytes(tmp_path, b"", "f.spacy")
    with pytest.raises(Exception, match=r"pip install .*\[hf\]'"):
        Corpus.read("somebody/something", format="huggingface")


# ---------------------------------------------------------------- files that are not what they seem


@pytest.mark.skipif(shutil.which("iconv") is None, reason="iconv is not installed")
@pytest.mark.parametrize(
    ("content", "encoding", "words"),
    [
        (b"\x93Caf\xe9\x94\tO\n\x80\tO\n", "WINDOWS-1252", ["“Café”", "€"]),
        # the first line that is not UTF-8 has no quote; a later one does
        (b"Caf\xe9\tO\n\x93so\x94\tO\n", "WINDOWS-1252", ["Café", "“so”"]),
        (b"Caf\xe9\tO\n", "WINDOWS-1252", ["Café"]),
        (b"\x81\xe9\tO\n", "LATIN1", ["\x81é"]),  # a byte that Windows-1252 does not have
    ],
)
def test_the_advice_for_another_encoding_keeps_every_character(
    tmp_path: Path, content: bytes, encoding: str, words: list[str]
) -> None:
    with pytest.raises(CorpusError, match="not valid UTF-8") as caught:
        read_bytes(tmp_path, content)
    advice = re.search(r"iconv .* FILE > NEW_FILE", str(caught.value))
    assert advice is not None and f"-f {encoding} " in advice.group()
    command = advice.group().replace("NEW_FILE", "new.conll").replace("FILE", "f.conll")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    (read,), _ = read_sentences(tmp_path / "new.conll")
    assert list(read.words) == words


SWAPPED = b"B-PER\tAda\nO\tlives\nO\tin\nB-LOC\tOslo\n\nO\tRain\n"


@pytest.mark.parametrize("content", [SWAPPED, SWAPPED.replace(b"\t", b" x y "), SWAPPED.replace(b"B-", b"")])
def test_swapped_columns_are_recognised_and_the_advice_reads_them(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CorpusError, match=r"the columns are swapped.*`tag_column=0`") as caught:
        read_bytes(tmp_path, content)
    assert caught.value.where == f"{tmp_path}/f.conll:1"
    (first, second), _ = read_bytes(tmp_path, content, tag_column=0)
    assert first.words == ("Ada", "lives", "in", "Oslo") and second.words == ("Rain",)
    assert [(span.start, span.type) for span in first.spans] == [(0, "PER"), (3, "LOC")]


def test_swapped_columns_of_unlabelled_text_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "f.conll").write_bytes(SWAPPED)
    with pytest.raises(CorpusError, match="columns are swapped"):
        unlabelled_text(tmp_path / "f.conll")


# ---------------------------------------------------------------- other names for types


@pytest.mark.parametrize("suffix", [".conll", ".jsonl", ".spacy"])
def test_rename_type_makes_one_of_several_spellings(tmp_path: Path, suffix: str) -> None:
    """Two mentions that touch stay two, although they have one type now."""
    if suffix == ".spacy":
        pytest.importorskip("spacy")
    given = Sentence(("Ada", "Bob", "left"), (Span(0, 1, "Person"), Span(1, 2, "PER")))
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    write_sentences([given], source)
    before = source.read_bytes()
    words = ["data", "rename-type", str(source), "Person,PER", "PERSON", "--out", str(target)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert source.read_bytes() == before
    (read,), _ = read_sentences(target)
    assert read.words == given.words and [*read.spans] == [Span(0, 1, "PERSON"), Span(1, 2, "PERSON")]
    again = CliRunner().invoke(app, words)  # nothing is overwritten without being asked
    assert isinstance(again.exception, CorpusError) and "exists" in str(again.exception)


def test_rename_type_of_a_folder_and_of_a_type_that_is_not_there(tiny_data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["data", "rename-type", str(tiny_data), "animal", "beast", "--out", str(out)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert Corpus.read(out).types == ["beast", "city", "dish", "person"]
    wrong = CliRunner().invoke(app, [*words[:3], "anmal", *words[4:]])
    assert "no type 'anmal'. Did you mean 'animal'" in str(wrong.exception)
