"""Publish an exported model on the Hugging Face hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from cfner.errors import ModelError
from cfner.interop.export import export_model
from cfner.interop.export_folder import is_export
from cfner.store.model_files import LoadedModel


def push_to_hub(
    model: LoadedModel | str | Path,
    repo_id: str,
    *,
    step: int | None = None,
    private: bool | None = None,
    token: str | None = None,
    commit_message: str = "Upload model",
    **commit: Any,
) -> str:
    """Upload an exported folder, or export a model (loaded, or a folder of steps) and upload that.

    The repository is created if it does not exist. ``token``: default: the one of ``hf auth login``.
    ``commit``: further arguments for the hub, such as ``revision`` and ``create_pr``. Returns the URL of the
    commit.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    with tempfile.TemporaryDirectory(prefix="cfner-hub-") as temporary:
        # the card is titled after the repository
        folder = Path(temporary) / repo_id.rsplit("/", 1)[-1]
        if not isinstance(model, LoadedModel) and is_export(Path(model)):
            folder = Path(model)
        else:
            export_model(model, folder, "hf", step=step)
        try:
            api = HfApi(token=token)
            api.create_repo(repo_id, private=private, repo_type="model", exist_ok=True)
            return str(
                api.upload_folder(
                    folder_path=folder,
                    repo_id=repo_id,
                    repo_type="model",
                    commit_message=commit_message,
                    **commit,
                )
            )
        except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, OSError) as error:
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ModelError(
                f"Could not upload the model to the hub ({first}).",
                where=repo_id,
                remedy="Check the name (OWNER/NAME), the network, and that you are logged in: hf auth login.",
            ) from error
