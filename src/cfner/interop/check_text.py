"""Ordinary sentences for testing an export: the norm of its features, and whether its predictions are the
same."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from cfner.batches.encoding import EncodedText
from cfner.corpus.sentence import Sentence
from cfner.errors import CorpusError
from cfner.interop.text_stream import read_texts, sentence_of_text
from cfner.network.inference import WordScorer, outputs
from cfner.network.prediction import TaggingModel

_SENTENCES = 2_000
_BATCH = 16
_TIE = 1e-3  # logits closer than this are a tie, decided by rounding

# Typical text: names, places, dates, amounts, short and long, with and without entities.
_ORDINARY = """\
The committee met on Tuesday and agreed to postpone the vote until the end of March.
Maria Keller flew from Zurich to Boston last week to visit her brother.
It rained all morning, but by noon the streets were dry again.
Shares of the company rose 4.2 percent to 31.50 euros after the report was published.
Please send the signed contract to the office in Leeds before 5 pm.
The University of Oslo and two hospitals will take part in the study.
He ordered the soup, a glass of water and, after some thought, the apple pie.
In 1998 the band released its second album, which sold more than two million copies.
How far is it from the station to the museum, and is there a bus on Sundays?
The doctor prescribed ibuprofen for the pain and asked her to come back in ten days.
Our flight BA 117 was late, so we missed the connection in New York.
Nothing in the letter explained why the old bridge had been closed.
"""


@dataclass(frozen=True)
class CheckText:
    """Sentences and their source (a file's name, or 'built in')."""

    sentences: tuple[Sentence, ...]
    source: str


@dataclass(frozen=True)
class Agreement:
    """An exported model compared with its original, word by word."""

    words: int
    same_label: int
    largest_logit_difference: float
    mean_score_difference: float  # of the probability of the original's label
    largest_score_difference: float


def built_in() -> CheckText:
    lines = _ORDINARY.splitlines()
    return CheckText(tuple(sentence_of_text(line, "built in") for line in lines), "built in")


def read_check_text(file: str | Path) -> CheckText:
    """The first 2,000 sentences of a file (text, JSON lines or CoNLL) that have words."""
    path = Path(file)
    sentences = tuple(islice((sentence for sentence in read_texts(path) if len(sentence)), _SENTENCES))
    if not sentences:
        raise CorpusError("The file contains no words.", where=str(path), remedy="Give some ordinary text.")
    return CheckText(sentences, path.name)


def mean_feature_norm(model: TaggingModel, text: CheckText) -> float:
    """The mean norm of the features, over all words."""
    encoded = model.encode(text.sentences)
    norms = [out.features.norm(dim=1).cpu() for _, out in outputs(model.network, encoded, batch_size=_BATCH)]
    return float(torch.cat(norms).mean())


def word_logits(network: WordScorer, text: EncodedText) -> Tensor:
    """[N, C] by TokenRef."""
    found = [(batch.refs.cpu(), out.logits.cpu()) for batch, out in outputs(network, text, batch_size=_BATCH)]
    logits = torch.cat([logits for _, logits in found])
    by_ref = torch.empty_like(logits)
    by_ref[torch.cat([refs for refs, _ in found])] = logits
    return by_ref


def compare(original: Tensor, exported: Tensor) -> Agreement:
    """Two sets of logits [N, C] for the same words."""
    best = original.argmax(1)
    rows = torch.arange(len(best))
    differences = (original.softmax(1)[rows, best] - exported.softmax(1)[rows, best]).abs()
    # a tie may go either way
    same = exported.max(1).values - exported[rows, best] <= _TIE
    return Agreement(
        words=len(best),
        same_label=int(same.sum()),
        largest_logit_difference=float((original - exported).abs().max()),
        mean_score_difference=float(differences.mean()),
        largest_score_difference=float(differences.max()),
    )
