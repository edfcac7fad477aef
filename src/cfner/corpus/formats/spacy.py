"""spaCy's DocBin files (.spacy): one sentence per document, with its text."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from cfner.corpus.formats import Format, ReadOptions
from cfner.corpus.json_records import keep_sentence
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, Span
from cfner.corpus.tags import Scheme
from cfner.corpus.tokenise import BLANK_MENTION
from cfner.errors import CorpusError, import_extra

UNANNOTATED = "document without entity annotation, left out"
BLANK_TOKEN = "token of whitespace only, left out"  # noqa: S105
EMPTY_DOCUMENT = "document without words, left out"
_SMALL = 16 << 20  # bytes; below this size unpacking is harmless
_MOST_UNPACKED = 200  # largest unpacked size, as a multiple of the file's size


def load_spacy() -> Any:
    return import_extra("spacy", "spacy", "Reading and writing .spacy files")


def read(path: Path, options: ReadOptions, report: ReadReport) -> list[Sentence]:
    sentences: list[Sentence] = []
    for number, doc in enumerate(_documents(path), start=1):
        place = f"{path}, document {number}"
        if len(doc) and not doc.has_annotation("ENT_IOB"):
            report.skip(len(doc), UNANNOTATED, place)
        else:
            keep_sentence(_sentence(doc, place, report), sentences, report, EMPTY_DOCUMENT)
    return sentences


def _documents(path: Path) -> list[Any]:
    spacy = load_spacy()
    try:
        _refuse_bomb(path.read_bytes())
        # DocBin is zlib over msgpack: a broken file may fail in either, or in spaCy's own unpacking.
        return list(spacy.tokens.DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab))
    except Exception as error:
        raise CorpusError(
            f"not a readable DocBin file ({type(error).__name__}: {error}).",
            where=str(path),
            remedy="Write it with spacy.tokens.DocBin(docs=...).to_disk(path).",
        ) from error


def _refuse_bomb(packed: bytes) -> None:
    """Refuse a decompression bomb: a small file that unpacks to more than fits in memory. Real documents
    compress to about a tenth.
    """
    limit = max(_SMALL, _MOST_UNPACKED * len(packed))
    unpacking = zlib.decompressobj()
    size = len(unpacking.decompress(packed, _SMALL))
    while unpacking.unconsumed_tail and size <= limit:
        size += len(unpacking.decompress(unpacking.unconsumed_tail, _SMALL))
    if size > limit:
        raise ValueError(f"it unpacks to more than {_MOST_UNPACKED} times its size")


def _sentence(doc: Any, place: str, report: ReadReport) -> Sentence:
    """Whitespace tokens are dropped, so the word positions of the mentions are counted without them."""
    position = [0]  # words before each token
    offsets: list[tuple[int, int]] = []
    for token in doc:
        if token.text.strip():
            offsets.append((token.idx, token.idx + len(token.text)))
        else:
            report.skip(1, BLANK_TOKEN, f"{place} (token {token.i + 1})")
        position.append(len(offsets))
    spans = []
    for entity in doc.ents:
        start, end = position[entity.start], position[entity.end]
        if not entity.label_:
            raise CorpusError(
                f"the entity '{entity.text}' has no label.", where=place, remedy="Give every entity a label."
            )
        if start < end:
            spans.append(Span(start, end, entity.label_))
        else:
            report.note(BLANK_MENTION, f"{place} (token {entity.start + 1})")
    text = doc.text  # read once: spaCy joins it on each access
    words = tuple(text[start:end] for start, end in offsets)
    return Sentence(words, tuple(spans), text, tuple(offsets), place)


def write(sentences: Sequence[Sentence], file: IO[bytes], scheme: Scheme) -> None:
    """A DocBin with one document per sentence; without a text, a sentence's words are joined by spaces."""
    spacy = load_spacy()
    vocab = spacy.blank("xx").vocab
    documents = spacy.tokens.DocBin()
    for sentence in sentences:
        documents.add(document_of(sentence, vocab, spacy))
    file.write(documents.to_bytes())


def document_of(sentence: Sentence, vocab: Any, spacy: Any) -> Any:
    words: list[str] = []
    spaces: list[bool] = []
    index: list[int] = []  # token number of each word
    for word, gap in _words_and_gaps(sentence):
        if word:
            index.append(len(words))
            words.append(word)
            spaces.append(gap.startswith(" "))
            gap = gap.removeprefix(" ")  # noqa: PLW2901
        if gap:  # spaCy stores all further whitespace as separate tokens
            words.append(gap)
            spaces.append(False)
    doc = spacy.tokens.Doc(vocab, words=words, spaces=spaces)
    doc.set_ents(
        [
            spacy.tokens.Span(doc, index[span.start], index[span.end - 1] + 1, label=span.type)
            for span in sentence.spans
        ],
        default="outside",
    )
    return doc


def _words_and_gaps(sentence: Sentence) -> Iterator[tuple[str, str]]:
    """Each word with the whitespace after it; first an empty word with the text's leading whitespace."""
    if sentence.text is None or sentence.offsets is None:
        last = len(sentence) - 1
        yield from ((word, "" if index == last else " ") for index, word in enumerate(sentence.words))
        return
    starts = [start for start, _ in sentence.offsets] + [len(sentence.text)]
    yield "", sentence.text[: starts[0]]
    for (start, end), following in zip(sentence.offsets, starts[1:], strict=True):
        yield sentence.text[start:end], sentence.text[end:following]


FORMAT = Format(name="spacy", suffixes=(".spacy",), read=read, write=write)
