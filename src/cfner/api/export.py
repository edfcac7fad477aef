"""``export``: a model for other programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cfner.api.arguments import PathLike

if TYPE_CHECKING:
    from cfner.interop.export_folder import ExportReport


def export(
    model: PathLike,
    out: PathLike,
    to: str = "hf",
    *,
    step: int | None = None,
    int8: bool = False,
    check_text: PathLike | None = None,
    license: str | None = None,
    overwrite: bool = False,
    push_to: str | None = None,
    private: bool | None = None,
) -> ExportReport:
    """Write a model so that programs without cfner can use it, with a model card.

    The export is read back and compared with the original before the folder appears.

    Args:
        model: A model folder ("M@3": its step 3), or any Hugging Face token-classification checkpoint.
        out: The folder to write; it must not exist.
        to: "hf": a stock transformers model. "onnx": for onnxruntime.
        step: Which step of the model; default: the current one.
        int8: ONNX with 8-bit weights: a quarter of the size, nearly the same predictions.
        check_text: A file of ordinary text of your domain (text lines, JSON lines, CoNLL) to compare the
            export on; default: a dozen built-in English sentences.
        license: Licence named in the model card, such as "apache-2.0".
        overwrite: Replace an earlier export (and nothing else).
        push_to: Also upload the folder to this repository on the hub, "owner/name".
        private: Whether a new repository is private; default: your account's setting.

    Returns:
        What was written, how it compares with the original, and where it was uploaded to.
    """
    from cfner.interop.export import export_model

    report = export_model(
        model, out, to, step=step, int8=int8, check_text=check_text, license=license, overwrite=overwrite
    )
    if push_to is None:
        return report
    from cfner.interop.hub import push_to_hub

    return replace(report, uploaded=push_to_hub(out, push_to, private=private))
