"""Publishing an exported model on the Hugging Face hub."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from cfner.errors import ModelError
from cfner.interop.export import export_model
from cfner.interop.export_folder import is_export
from cfner.interop.hf_export import export_huggingface
from cfner.store.model_files import LoadedModel


def push_to_hub(
    model: LoadedModel | str | Path,
    repo_id: str,
    *,
    step: int | None = None,
    private: bool | None = None,
    token: str | None = None,
    commit_message: str = "Upload model",
    revision: str | None = None,
    create_pr: bool = False,
) -> str:
    """Upload an exported folder, or export a model (loaded, or a folder of steps) and upload that.

    The repository is made if there is none. ``token``: default is the one of ``hf auth login``. Returns the
    address of the commit.
    """
    upload = partial(
        _upload, repo_id=repo_id, private=private, token=token, message=commit_message, revision=revision,
        create_pr=create_pr,
    )  # fmt: skip
    if not isinstance(model, LoadedModel) and is_export(Path(model)):
        return upload(Path(model))
    with tempfile.TemporaryDirectory(prefix="cfner-hub-") as temporary:
        # the card is titled after the repository
        folder = Path(temporary) / repo_id.rsplit("/", 1)[-1]
        if isinstance(model, LoadedModel):
            export_huggingface(model, folder)
        else:
            export_model(model, folder, "hf", step=step)
        return upload(folder)


def _upload(
    folder: Path,
    *,
    repo_id: str,
    private: bool | None,
    token: str | None,
    message: str,
    revision: str | None,
    create_pr: bool,
) -> str:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    api = huggingface_hub.HfApi(token=token)
    try:
        api.create_repo(repo_id, private=private, repo_type="model", exist_ok=True)
        done = api.upload_folder(
            folder_path=folder,
            repo_id=repo_id,
            repo_type="model",
            commit_message=message,
            revision=revision,
            create_pr=create_pr,
        )
    except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, OSError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"The hub did not take the model ({first}).",
            where=repo_id,
            remedy="Check the name (OWNER/NAME), the network, and that you are logged in: hf auth login.",
        ) from error
    return str(done)
