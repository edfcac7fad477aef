"""The inputs of ``diff``: two models, named in several ways, and a text, labelled or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from cfner.corpus.conll_layout import LOOKED_AT, looks_tagged
from cfner.corpus.corpus import Corpus
from cfner.corpus.formats import format_of
from cfner.corpus.in_memory import Data
from cfner.corpus.json_records import SPAN_FIELDS, TAG_FIELDS
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, mention_counts
from cfner.corpus.text_lines import text_lines
from cfner.errors import ConfigError
from cfner.interop.export import open_for_prediction
from cfner.interop.text_names import is_file
from cfner.interop.text_stream import read_texts
from cfner.interop.texts_to_tag import TextsToTag
from cfner.network.prediction import TaggingModel
from cfner.store.lineage import lineage_step
from cfner.store.model_folder import ModelFolder
from cfner.store.open import ModelRef, is_model_folder


def open_ref(model: ModelRef, device: str = "auto") -> TaggingModel:
    """Load a model folder, a checkpoint or an ONNX folder."""
    return open_for_prediction(model.source, model.step, device=device)


def two_models(
    names: Sequence[str], step: int | None = None, step2: int | None = None
) -> tuple[ModelRef, ModelRef]:
    """The two models to compare. With one name: two of its steps, by default the last two."""
    if len(names) == 2:
        return ModelRef.parse(names[0], step), ModelRef.parse(names[1], step2)
    first = ModelRef.parse(names[0], step)
    if not is_model_folder(first.source):
        raise ConfigError(
            f"Only one model was given, and '{first.source}' is not a folder with steps to compare.",
            remedy="Check its name, or give two models and a text: `diff(M, M2, TEXT)`.",
        )
    later = int(ModelFolder(first.source).step().name) if step2 is None else step2
    # its parent: after a rollback that is not the step with the previous number
    earlier = lineage_step(first.source, later).parent if first.step is None else first.step
    if earlier is None:
        raise ConfigError(
            f"There is no step before step {later}.",
            where=first.source,
            remedy="Name two steps: `step`, `step2`.",
        )
    return ModelRef(first.source, earlier), ModelRef(first.source, later)


@dataclass(frozen=True)
class Source:
    """Sentences to compare on, and the types that they are labelled with (none for plain text)."""

    sentences: Iterable[Sentence]
    judged: tuple[str, ...] = ()


def text_source(
    text: Data, *, format: str | None = None, tag_column: str | int | None = None, plain: bool = False
) -> Source:
    """A labelled file or folder in any format (its test split, if it has one), a text file, or data
    in memory: a text, texts, or labelled data.

    A ``.txt`` file is labelled if it looks like columns of words and tags; ``plain`` turns that off.
    Plain text is read line by line, one text each.
    """
    if isinstance(text, str) and not is_file(text):
        text = [text]
    if isinstance(text, str | Path):
        if plain or (format is None and _is_plain_text(Path(text))):
            return Source(plain_texts(Path(text)))
    else:
        first, text = _first_of(text)
        if plain or _is_text(first):
            return Source(TextsToTag.of(text).sentences)
        text = list(text) if isinstance(text, Iterator) else text
    corpus = Corpus.read(text, format=format, tag_column=tag_column)
    sentences = corpus.test or corpus.dev or corpus.train
    return Source(sentences, tuple(sorted(mention_counts(sentences))))


def _first_of(given: Data) -> tuple[object, Data]:
    """The first item of data in memory, and the data with it."""
    if isinstance(given, Iterator):
        read = list(islice(given, 1))
        return (read[0] if read else ""), chain(read, given)
    return (given[0] if isinstance(given, list | tuple) and given else None), given


def _is_text(item: object) -> bool:
    """Whether an item is unlabelled: a text, words, or a record without labels."""
    if isinstance(item, Mapping):
        return not any(field in item for field in (*TAG_FIELDS, *SPAN_FIELDS))
    words = isinstance(item, list | tuple) and all(isinstance(word, str) for word in item)
    return isinstance(item, str) or words


def plain_texts(path: Path) -> Iterator[Sentence]:
    """One text per line, as a stream; empty lines are skipped."""
    return (sentence for sentence in read_texts(path, "text") if len(sentence))


def _is_plain_text(path: Path) -> bool:
    if not path.is_file():
        return False
    if path.suffix.lower() != ".txt":
        return format_of(path) is None
    filled = (line for line in text_lines(path, ReadReport()) if line[1].strip())
    return not looks_tagged(islice(filled, LOOKED_AT))
