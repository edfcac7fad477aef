"""``cfner evaluate``: score a saved model on labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cfner.cli import options as o
from cfner.cli.show import console, print_json, say, scores_table
from cfner.errors import CorpusError


def evaluate(
    model: o.Model,
    data: Annotated[str, typer.Argument(help="A labelled file, or a folder (its test split is used).")],
    step: o.Step = None,
    format: o.Format = None,
    tag_column: o.TagColumn = None,
    all_types: Annotated[
        bool,
        o.Flag(
            "--all-types", help="Score types that the data does not label, too: all their finds are wrong."
        ),
    ] = False,
    batch_size: o.Windows = 64,
    device: o.Device = "auto",
    json: o.Json = False,
) -> None:
    """Entity-level precision, recall and F1 per type, and the two confusions.

    Labels of types that the model has not learned are set aside, and counted. So are finds of types that
    the data does not label anywhere: nobody could tell whether they are right.
    """
    from cfner.corpus.corpus import Corpus
    from cfner.interop.onnx import OnnxTagger, is_onnx_folder
    from cfner.tagger import ContinualTagger

    corpus = Corpus.read(data, format=format, tag_column=tag_column)
    sentences = corpus.test if Path(data).is_dir() else corpus.train
    if not sentences:
        raise CorpusError("There is no test split.", where=data, remedy="Name a labelled file instead.")
    tagger: ContinualTagger | OnnxTagger
    if is_onnx_folder(model):
        tagger = OnnxTagger.read(model, batch_size=batch_size, device=device)
    else:
        tagger = ContinualTagger.open(model, step, eval_batch_size=batch_size, device=device)
    unknown = sorted({type_ for s in sentences for type_ in s.types} - set(tagger.types))
    aside = sum(span.type in unknown for s in sentences for span in s.spans)
    labelled = {type_ for s in sentences for type_ in s.types}
    unlabelled = [] if all_types else [type_ for type_ in tagger.types if type_ not in labelled]
    scores = tagger.evaluate([sentence.only(tagger.types) for sentence in sentences]).without(unlabelled)
    if json:
        print_json(
            {
                **scores.to_json(),
                "unknown_types": unknown,
                "mentions_set_aside": aside,
                "unlabelled_types": unlabelled,
                "device": str(tagger.device),
            }
        )
        return
    screen = console()
    screen.print(scores_table(scores, f"{len(sentences)} sentences of {corpus.name}, on {tagger.device}"))
    found = scores.confusions
    if found is not None and found.old_to_other is not None:
        screen.print(f"Words of old types taken for O: {found.old_to_other:.1f} %")
    if found is not None and found.to_new is not None:
        screen.print(f"Words of O or old types taken for the newest types: {found.to_new:.2f} %")
    if unknown:
        say(f"Set aside, {aside} mentions of types not learned: {', '.join(unknown)}")
    if unlabelled:
        say(f"Set aside, types that this data does not label: {', '.join(unlabelled)}")
