"""The inputs of ``learn``, read and checked before a model is loaded, and which of them are not used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfner.corpus.corpus import Corpus, sentences_of
from cfner.corpus.in_memory import Data, source_name
from cfner.corpus.report import ReadReport
from cfner.corpus.sentence import Sentence, mention_counts
from cfner.corpus.split_files import SPLITS
from cfner.errors import CorpusError
from cfner.practice.check.findings import Finding
from cfner.practice.check.quick import data_findings
from cfner.practice.learn.new_data import NewData
from cfner.practice.learn.unlabelled import Given, Texts, UnlabelledText, read_unlabelled


@dataclass(frozen=True)
class Inputs:
    """``new``: nothing held out yet. ``guard`` judges, ``replay`` is mixed in, ``texts`` have no labels.
    ``data``: the name of the new data.
    """

    data: str
    reading: Mapping[str, Any]
    corpus: Corpus
    new: NewData
    texts: Texts
    guard: tuple[Sentence, ...]
    guard_name: str
    replay: tuple[Sentence, ...]
    left_out: tuple[str, ...]  # messages about data left out while reading

    @classmethod
    def read(
        cls,
        data: Data,
        reading: Mapping[str, Any],
        unlabelled: Sequence[Given],
        guard: Data | None,
        replay: Data | None,
    ) -> Inputs:
        corpus = Corpus.read(data, **reading)
        new, texts = NewData.of(corpus, dev_share=0), read_unlabelled(unlabelled)
        nothing: tuple[tuple[Sentence, ...], ReadReport, str] = ((), ReadReport(), "")
        judging, judging_read, name = nothing if guard is None else sentences_of(guard, "test")
        mixed_in, mixed_in_read, _ = nothing if replay is None else sentences_of(replay, "train")
        reports = ((data, corpus.report), (guard, judging_read), (replay, mixed_in_read))
        left_out = tuple(
            f"{source_name(source)}: {line}." for source, report in reports for line in report.left_out()
        )
        return cls(source_name(data), reading, corpus, new, texts, judging, name, mixed_in, left_out)

    def checked(
        self, wanted: Sequence[str] | None, known: Sequence[str], unchecked: bool
    ) -> tuple[Finding, ...]:
        """Return the warnings. Errors are raised, unless ``unchecked``."""
        types = sorted(self.new.types) if wanted is None else wanted
        found = data_findings(self.corpus, types, known, self.data, self.reading)
        if not unchecked:
            _refuse_wrong(found, self.data)
        return tuple(finding for finding in found if finding.severity != "note")

    def not_used(
        self, current: Collection[str], known: Collection[str], text: UnlabelledText
    ) -> tuple[str, ...]:
        """Messages about data that a step that learns ``current`` and keeps ``known`` does not use."""
        labels = sum((self.corpus.mentions(split) for split in SPLITS), start=Counter[str]())
        return (
            *self.left_out,
            *_dropped(labels, current, f"{self.data}: dropped labels of types that this step does not learn"),
            *_dropped(
                mention_counts(self.replay), known, "Old sentences: dropped labels of types that are not old"
            ),
            *self._unused_text(text),
        )

    def _unused_text(self, text: UnlabelledText) -> Sequence[str]:
        """Unlabelled sentences that neither remind the model nor compare it with the old one."""
        used = {s.key for part in (text.pool, *text.compared.values()) for s in part}
        unused = sum(s.key not in used for sentences in self.texts.values() for s in sentences)
        return (
            [f"{unused:,} unlabelled sentences left out: the new data contains them too."] if unused else []
        )


def _refuse_wrong(findings: Sequence[Finding], data: str) -> None:
    """Raise all errors in the data as one."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        raise CorpusError(
            " ".join(finding.in_words() for finding in errors),
            where=data,
            remedy="To learn from the data as it is: `unchecked=True`.",
        )


def _dropped(counts: Counter[str], kept: Collection[str], message: str) -> Sequence[str]:
    dropped = [f"{type_} ({count:,})" for type_, count in sorted(counts.items()) if type_ not in kept]
    return [f"{message}: {', '.join(dropped)}."] if dropped else []
