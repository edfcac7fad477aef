"""The part of a check that needs no model: ``learn`` runs it first, and stops at errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cfner.corpus.corpus import Corpus
from cfner.corpus.sentence import Sentence
from cfner.corpus.split_files import SPLITS
from cfner.practice.check.commands import rename_command
from cfner.practice.check.findings import Finding
from cfner.practice.check.mentions import (
    balance_findings,
    column_findings,
    rarity_findings,
    surface_findings,
)
from cfner.practice.check.names import name_findings
from cfner.practice.check.sentences import (
    character_findings,
    length_findings,
    reading_findings,
    repetition_findings,
)


def data_findings(
    corpus: Corpus,
    current: Sequence[str],
    known: Sequence[str],
    data: str,
    reading: Mapping[str, Any],
    held_out: Sequence[Sentence] = (),
) -> list[Finding]:
    """Findings about data from which a model that knows ``known`` learns ``current``.

    ``data`` and ``reading`` say where and how the corpus was read, for commands that can be copied.
    """
    mentions = sum((corpus.mentions(split) for split in SPLITS), start=Counter[str]())
    return [
        *name_findings(current, known, mentions, partial(rename_command, data, reading)),
        *column_findings(corpus.train),
        *rarity_findings(corpus, current, held_out),
        *repetition_findings(corpus),
        *balance_findings(corpus.train),
        *surface_findings(corpus.train, current),
        *character_findings([s for split in SPLITS for s in corpus.split_named(split)]),
        *length_findings(corpus.train),
        *reading_findings(corpus.report),
    ]
