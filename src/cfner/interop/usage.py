"""The part of a model card that explains how to use the exported model, and where its predictions differ."""

from __future__ import annotations

from cfner.files.markdown import escaped
from cfner.interop.export_folder import ExportReport
from cfner.store.model_files import LoadedModel

_PIPELINE = """\
```python
from transformers import pipeline

find = pipeline("token-classification", "PATH OR NAME OF THIS MODEL", aggregation_strategy="first")
find("Ada Lovelace lived in London .")
```

`aggregation_strategy="first"` is the right one: the model was trained on the first subword of each word, \
and its predictions for later subwords are meaningless. Differences from `cfner predict`:
"""

_ONNX = """\
```python
from cfner.interop.onnx import OnnxTagger

tagger = OnnxTagger.read("PATH OF THIS FOLDER")
tagger.predict("Ada Lovelace lived in London.")
```

or `cfner predict PATH "Ada Lovelace lived in London."`. The file model.onnx reads `input_ids` and \
`attention_mask` (int64, batch x length) and gives `logits` (batch x length x labels); the label of a word \
is that of its first subword. Labels and scheme are in labels.json, the names also in config.json.
"""


def usage(model: LoadedModel, report: ExportReport) -> str:
    if report.kind == "hf":
        scores = _scores(report, model.labels.has_own_others)
        points = [*_word_differences(model), *_scheme_differences(model, report), _length(model), scores]
        points.append(
            "A text that holds one of the tokenizer's special tokens (such as `[SEP]`) is read as that "
            "token; cfner reads it as text."
        )
        return _PIPELINE + "\n" + "".join(f"- {point}\n" for point in points)
    same, where = report.agreement, escaped(report.checked_on)
    compared = (
        f"Compared with the original on {same.words} words ({where}): the same label for "
        f"{same.same_label}, logits differ by at most {same.largest_logit_difference:.2g}."
    )
    weights = "Weights are 8-bit integers (dynamic quantisation). " if report.kind == "onnx-int8" else ""
    return f"{_ONNX}\n{weights}{compared}\n"


def _word_differences(model: LoadedModel) -> list[str]:
    backend = model.tokenizer.backend_tokenizer.model
    pretokenised = (
        'If your text is already split into words, pass it as `find([["Ada", "Lovelace", "lived"]], '
        'is_split_into_words=True, delimiter=" ")`; the subwords are then exactly those of cfner'
    )
    if getattr(backend, "continuing_subword_prefix", None):
        return [
            "The pipeline uses the tokenizer's words, which are split at every punctuation mark: "
            "where cfner has one word (`O'Brien`, `1,250.50`), the pipeline has several (`O`, `'`, `Brien`) "
            "and labels each. Elsewhere the words, and so the entities, are the same. "
            f"{pretokenised}, but words with punctuation inside are still divided."
        ]
    return [
        "This tokenizer does not mark where words begin, so the pipeline splits words at whitespace only: "
        "`London.` is a word with its full stop, and the entity includes it. Put spaces around "
        f"punctuation, as above, to get the words of cfner. {pretokenised}."
    ]


def _scheme_differences(model: LoadedModel, report: ExportReport) -> list[str]:
    points = []
    if model.labels.ordered:
        points.append(
            "The pipeline chooses the label of each word alone. cfner chooses those of a sentence together, "
            "so that they follow the scheme (`I-city` only after `B-city` or `I-city`). In "
            f"{report.broken_sentences} of {report.sentences} sentences ({escaped(report.checked_on)}) the "
            "labels of single words do not, and the pipeline finds pieces of mentions there."
        )
    if model.labels.scheme in {"BIOES", "BILOU"}:
        points.append(
            f"The labels follow the scheme {model.labels.scheme}, but the pipeline joins `B-` and `I-` only: "
            "it returns the parts of a mention one by one. Join them by their labels, or use cfner."
        )
    if set(model.labels.silent) - set(model.labels.unheard) and model.labels.has_own_others:
        points.append(
            "Some labels name no type and are called `O` here. Where such a label is the largest, the "
            "pipeline finds nothing; cfner still checks the types that are decided independently of it."
        )
    return points


def _length(model: LoadedModel) -> str:
    return (
        f"The pipeline truncates texts after {model.max_length} subwords; pass "
        f"`stride={model.max_length // 4}` to have longer ones read in overlapping pieces."
    )


def _scores(report: ExportReport, own_others: bool) -> str:
    same, where = report.agreement, escaped(report.checked_on)
    agreed = "all" if same.same_label == same.words else str(same.same_label)
    measured = (
        f"{same.words} words ({where}): the same label for {agreed} of them, probabilities "
        f"differ by {same.mean_score_difference:.3f} on average and by {same.largest_score_difference:.2f} "
        "at most"
    )
    meaning = "The pipeline's score is the mean probability of a mention's labels, cfner's that of its type"
    if own_others:
        meaning = (
            "Types of this model are decided independently, each against its own Other class. "
            "cfner's score is the probability of the type against its own Other, which does not change when "
            "types are added. The pipeline's is a softmax over all labels, in which `O` shrinks with every "
            "type: if nine types each give a word 90 % for their own Other, `O` gets 50 %. So do "
            "not use a threshold of one for the other"
        )
    if report.calibration is not None:
        meaning += (
            ". The original is calibrated on held-out data: the shift of each type is a bias here, so that "
            "the pipeline decides as the original does, but its scores are its own softmax, which is not "
            "calibrated"
        )
    if report.mean_feature_norm is None:
        return f"{meaning}. The weights are the original's. Measured on {measured}."
    labels = "labels are those of the original"
    if report.shifts_are_inexact:
        labels = (
            "labels would be those of the original without its calibrated shifts, which hold exactly only "
            f"where features have the mean length: {same.words - same.same_label} of {same.words} words are "
            "decided otherwise"
        )
    return (
        f"{meaning}. Besides, the original compares directions only (a cosine head); here that head is "
        "folded into a linear layer, its rows divided by the mean length of the features "
        f"({report.mean_feature_norm:.4f}). All logits of a word are scaled by the same number, so {labels}; "
        "scores are close, but not the same: surer where features are long, less sure where they are short. "
        f"Measured on {measured}."
    )
