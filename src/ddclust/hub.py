"""Model folders on the Hugging Face hub. The hub's own client does the work; it comes with the extra ``hub``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ddclust.storage.model_folder import CARD_FILE, DESCRIPTION_FILE, TENSORS_PATTERN


class MissingHubError(ImportError):
    """The client of the Hugging Face hub is not installed."""


def downloaded(name: str | os.PathLike[str], revision: str | None, token: str | None) -> Path:
    """A model folder by its path or, if there is none, by its name on the hub; only files of models are fetched."""
    if Path(name).is_dir() or not isinstance(name, str):
        return Path(name)
    patterns = [DESCRIPTION_FILE, TENSORS_PATTERN, CARD_FILE]
    return Path(_client().snapshot_download(name, revision=revision, token=token, allow_patterns=patterns))


def upload(folder: Path, repo_id: str, *, private: bool, token: str | None, message: str) -> str:
    """Put a model folder into a repository of the hub, which is made if there is none; gives the address of the change."""
    api = _client().HfApi(token=token)
    api.create_repo(repo_id, private=private, exist_ok=True)
    done = api.upload_folder(
        repo_id=repo_id, folder_path=folder, commit_message=message, delete_patterns=[TENSORS_PATTERN]
    )
    return str(done.commit_url)


def _client() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingHubError(
            "The Hugging Face hub needs huggingface_hub; run: pip install huggingface_hub."
        ) from error
    return huggingface_hub
