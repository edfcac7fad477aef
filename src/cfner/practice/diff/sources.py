"""What ``diff`` is given: two models, named in several ways, and a text, labelled or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cfner.corpus.conll_layout import LOOKED_AT, looks_tagged
from cfner.corpus.corpus import Corpus
from cfner.corpus.formats import format_of
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, mention_counts
from cfner.corpus.text_lines import text_lines
from cfner.errors import ConfigError
from cfner.interop.export import open_for_prediction
from cfner.interop.text_stream import read_texts, sentence_of_text
from cfner.network.prediction import TaggingModel
from cfner.store.lineage import lineage_step
from cfner.store.model_folder import ModelFolder
from cfner.store.open import ModelRef, is_model_folder


def open_ref(model: ModelRef, device: str = "auto") -> TaggingModel:
    """A model folder, a checkpoint or an ONNX folder, ready to tag."""
    return open_for_prediction(model.source, model.step, device=device)


def two_models(
    names: Sequence[str], step: int | None = None, step2: int | None = None
) -> tuple[ModelRef, ModelRef]:
    """The two models to compare. One name stands for both: two of its steps, by default the last two."""
    if len(names) == 2:
        return ModelRef.parse(names[0], step), ModelRef.parse(names[1], step2)
    if len(names) != 1:
        raise ConfigError(
            f"{len(names)} models were given, where two are compared.",
            remedy="Give two models and a text, or one model folder with --step and --step2.",
        )
    first = ModelRef.parse(names[0], step)
    if not is_model_folder(first.source):
        raise ConfigError(
            f"Only one model was given, and '{first.source}' has no steps to compare.",
            remedy="Give two models and a text: cfner diff M M2 TEXT.",
        )
    later = int(ModelFolder(first.source).step().name) if step2 is None else step2
    # the step that it came from: after a rollback that is not the one with the number before
    earlier = lineage_step(first.source, later).parent if first.step is None else first.step
    if earlier is None:
        raise ConfigError(
            f"There is no step before step {later}.",
            where=first.source,
            remedy="Name two steps: --step, --step2.",
        )
    return ModelRef(first.source, earlier), ModelRef(first.source, later)


@dataclass(frozen=True)
class Source:
    """Sentences to compare on, and the types that they are labelled with (none for plain text)."""

    sentences: Iterable[Sentence]
    judged: tuple[str, ...] = ()


def literal_texts(texts: Sequence[str]) -> Source:
    return Source([sentence_of_text(text, f"text {number}") for number, text in enumerate(texts, start=1)])


def text_source(
    path: str, *, format: str | None = None, tag_column: str | None = None, plain: bool = False
) -> Source:
    """A labelled file or folder in any format (its test split, if it has one), or a text file.

    A ``.txt`` file is labelled if it looks like columns of words and tags; ``plain`` says that it is not.
    Plain text is read line by line, one text each.
    """
    if plain or (format is None and _is_plain_text(Path(path))):
        return Source(plain_texts(Path(path)))
    corpus = Corpus.read(path, format=format, tag_column=tag_column)
    sentences = corpus.test or corpus.dev or corpus.train
    return Source(sentences, tuple(sorted(mention_counts(sentences))))


def plain_texts(path: Path) -> Iterator[Sentence]:
    """One text per line, as a stream; empty lines are passed over."""
    return (sentence for sentence in read_texts(path, "text") if len(sentence))


def _is_plain_text(path: Path) -> bool:
    if not path.is_file():
        return False
    if path.suffix.lower() != ".txt":
        return format_of(path) is None
    filled = (line for line in text_lines(path, ReadReport()) if line[1].strip())
    return not looks_tagged(islice(filled, LOOKED_AT))
