"""``cfner export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cfner.cli import options as o
from cfner.cli.settings import call_of
from cfner.cli.show import print_json, say

if TYPE_CHECKING:
    from cfner.interop.export_folder import ExportReport


def export(
    model: o.Checkpoint,
    out: Annotated[Path, o.Flag("--out", "-o", help="The folder to write; it must not exist.")],
    to: Annotated[str, o.Flag("--to", help="hf: a stock transformers model. onnx: for onnxruntime.")] = "hf",
    step: o.Step = None,
    int8: Annotated[
        bool,
        o.Flag("--int8", help="ONNX with 8-bit weights: a quarter of the size, nearly the same predictions."),
    ] = False,
    check_text: Annotated[
        Path | None,
        o.Flag(
            help="A file of ordinary text of your domain (text lines, JSON lines, CoNLL) to compare the "
            "export on; default: a dozen built-in English sentences."
        ),
    ] = None,
    license: Annotated[
        str | None, o.Flag(help="Licence named in the model card, such as apache-2.0.")
    ] = None,
    overwrite: Annotated[
        bool, o.Flag("--overwrite", help="Replace an earlier export (and nothing else).")
    ] = False,
    push_to: Annotated[
        str | None, o.Flag(metavar="OWNER/NAME", help="Also upload the folder to the hub.")
    ] = None,
    private: Annotated[
        bool | None,
        o.Flag(
            "--private/--public", help="Visibility of a new repository on the hub; default: your account's."
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Write a model so that programs without cfner can use it, with a model card.

    The export is read back and compared with the original before the folder appears.
    """
    arguments = call_of(locals())
    from cfner.api.export import export as export_model

    report = export_model(**arguments)
    if json:
        print_json({**report.to_json(), "folder": str(out), "uploaded": report.uploaded})
        return
    for line in _told(report):
        say(line, wrap=False)
    if report.uploaded is not None:
        say(f"Uploaded: {report.uploaded}", wrap=False)


def _told(report: ExportReport) -> list[str]:
    same = report.agreement
    kinds = {"hf": "a stock transformers model", "onnx": "ONNX", "onnx-int8": "ONNX with 8-bit weights"}
    lines = [
        f"Written: {report.folder} ({kinds[report.kind]}; {', '.join(report.types)})",
        f"Compared with the original on {same.words} words ({report.checked_on}): {same.same_label} have the "
        f"same label; probabilities differ by {same.mean_score_difference:.3f} on average.",
    ]
    if report.shifts_are_inexact:
        lines.append(
            f"Different label: {same.words - same.same_label} of {same.words} words. The cosine head "
            "became a linear one, and the calibrated shifts hold exactly only where features have the mean "
            f"length ({report.mean_feature_norm:.3f}). The README says more."
        )
    elif report.mean_feature_norm is not None:
        lines.append(
            "The cosine head became a linear one, divided by the mean length of the features "
            f"({report.mean_feature_norm:.3f}): labels stay, scores shift a little. The README says more."
        )
    if report.kind == "hf" and report.broken_sentences:
        lines.append(
            f"In {report.broken_sentences} of {report.sentences} sentences a stock pipeline finds pieces of "
            "mentions, because it labels each word alone. The README says more."
        )
    if report.kind == "hf" and report.calibration is not None:
        lines.append(
            "A stock pipeline makes the calibrated decisions, but its scores are uncalibrated softmax values."
        )
    if report.kind == "hf":
        lines.append(f"Try: transformers.pipeline('token-classification', '{report.folder}', "
                     "aggregation_strategy='first')")  # fmt: skip
    else:
        lines.append(f"Try: cfner predict {report.folder} 'some text'")
    return lines
