"""Publishing an exported model on the Hugging Face hub."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cfner.errors import ModelError
from cfner.interop.export import export_model
from cfner.interop.export_folder import is_export
from cfner.interop.hf_export import export_huggingface
from cfner.model.saving import LoadedModel


def push_to_hub(
    model: LoadedModel | str | Path,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | None = None,
    commit_message: str = "Upload model",
) -> str:
    """Upload an exported folder, or export a model (loaded, or a folder of steps) and upload that.

    The repository is made if there is none. ``token``: default is the one of ``hf auth login``. Returns the
    address of the commit.
    """
    if not isinstance(model, LoadedModel) and is_export(Path(model)):
        return _upload(Path(model), repo_id, private, token, commit_message)
    with tempfile.TemporaryDirectory(prefix="cfner-hub-") as temporary:
        # the card is titled after the repository
        folder = Path(temporary) / repo_id.rsplit("/", 1)[-1]
        if isinstance(model, LoadedModel):
            export_huggingface(model, folder)
        else:
            export_model(model, folder, "hf")
        return _upload(folder, repo_id, private, token, commit_message)


def _upload(folder: Path, repo_id: str, private: bool | None, token: str | None, message: str) -> str:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    api = huggingface_hub.HfApi(token=token)
    try:
        api.create_repo(repo_id, private=private, repo_type="model", exist_ok=True)
        done = api.upload_folder(
            folder_path=folder, repo_id=repo_id, repo_type="model", commit_message=message
        )
    except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, OSError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"The hub did not take the model ({first}).",
            where=repo_id,
            remedy="Check the name (OWNER/NAME), the network, and that you are logged in: hf auth login.",
        ) from error
    return str(done)
