"""Models in a folder, or in the cache of Hugging Face, as encoders. Nothing is downloaded, and no code of theirs is run."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ddclust.encoders.digests import digest_of_files
from ddclust.encoders.encoder import IMAGES, TEXTS, Encoder, EncoderError
from ddclust.encoders.photographs import as_photographs

# Weights as safetensors, which hold nothing that runs, and what describes them.
MODEL_SUFFIXES = (".safetensors", ".json", ".txt", ".model")
MOST_FILES = 1000  # in the folder of a model
# Earlier ones run code that the folder of a model brings with it, whatever trust_remote_code is.
SAFE_SENTENCE_TRANSFORMERS = 6
TEXT_BATCH, IMAGE_BATCH = 32, 32


def local_encoder(name: str, kind: str) -> Encoder:
    """The model in a folder, or one of Hugging Face's that was downloaded before, as an encoder of texts or images."""
    folder = _folder(name)
    return text_model(folder, name) if kind == TEXTS else image_model(folder, name)


@lru_cache(maxsize=2)
def text_model(folder: Path, name: str) -> Encoder:
    """A sentence-transformers model, or any other model of texts, whose outputs are then averaged over the tokens."""
    _need("sentence_transformers", "sentence-transformers", name)
    if int(version("sentence-transformers").partition(".")[0]) < SAFE_SENTENCE_TRANSFORMERS:
        raise EncoderError(
            f"encoder={name!r} needs sentence-transformers {SAFE_SENTENCE_TRANSFORMERS} or later, since earlier ones may"
            " run code from the folder of a model; run: pip install --upgrade sentence-transformers."
        )
    from sentence_transformers import SentenceTransformer

    digest = _digest(folder, name)
    model = _loaded(
        name,
        lambda: SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        ),
    )

    def encode(texts: list[str]) -> NDArray[np.float32]:
        return model.encode(texts, batch_size=TEXT_BATCH, show_progress_bar=False, convert_to_numpy=True)

    return Encoder(name, (TEXTS,), encode, digest)


@lru_cache(maxsize=2)
def image_model(folder: Path, name: str) -> Encoder:
    """A model of images with its image processor; its pooled output, or else the mean of its outputs."""
    _need("transformers", "transformers", name)
    from transformers import AutoImageProcessor, AutoModel

    digest = _digest(folder, name)
    only_here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    model = _loaded(name, lambda: AutoModel.from_pretrained(folder, use_safetensors=True, **only_here))
    processor = _loaded(name, lambda: AutoImageProcessor.from_pretrained(folder, **only_here))
    model.eval()

    def encode(images: NDArray) -> NDArray[np.float32]:
        found = []
        with torch.inference_mode():
            for batch in as_photographs(images).to(torch.uint8).split(IMAGE_BATCH):
                inputs = processor(
                    list(batch.numpy()), return_tensors="pt", input_data_format="channels_first"
                )
                outputs = model(**inputs)
                pooled = getattr(outputs, "pooler_output", None)
                pooled = outputs.last_hidden_state.mean(dim=1) if pooled is None else pooled
                found.append(pooled.flatten(1).float())
        return torch.cat(found).numpy()

    return Encoder(name, (IMAGES,), encode, digest)


def _folder(name: str) -> Path:
    """Where a model is: the folder of this name, or the copy of a repository in Hugging Face's cache."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.resolve()
    if find_spec("huggingface_hub") is not None:
        from huggingface_hub import snapshot_download

        try:
            return Path(snapshot_download(name, local_files_only=True))
        except (OSError, ValueError):  # there is none, or it is no name of a repository
            pass
    raise EncoderError(
        f"encoder={name!r} is none of 'minilm', 'static' and 'efficientnet', nor a folder with a model, nor a model in"
        " Hugging Face's cache on this machine; nothing is downloaded."
    )


def local_digest(name: str) -> str:
    """The digest of the encoder that :func:`local_encoder` would give; nothing is loaded."""
    return _digest(_folder(name), name)


def _digest(folder: Path, name: str) -> str:
    found = list(islice(folder.rglob("*"), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        raise EncoderError(
            f"encoder={name!r} holds more than {MOST_FILES:,} files; give the folder of a single model."
        )
    files = [file for file in found if file.is_file() and file.suffix in MODEL_SUFFIXES]
    if not any(file.suffix == ".safetensors" for file in files):
        raise EncoderError(
            f"encoder={name!r} holds no weights as safetensors; save the model in that format."
        )
    return digest_of_files(files, folder)


def _need(package: str, distribution: str, name: str) -> None:
    if find_spec(package) is None:
        raise EncoderError(f"encoder={name!r} needs {distribution}; run: pip install {distribution}.")


def _loaded(name: str, load: Any) -> Any:
    """What a library makes of a folder; its many errors become one, and its progress bars are not shown."""
    from transformers.utils import logging

    showed = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return load()
    except Exception as error:  # there is no telling what damaged files raise
        problem = (str(error).splitlines() or [type(error).__name__])[0]
        raise EncoderError(f"encoder={name!r} cannot be loaded: {problem:.200}") from error
    finally:
        if showed:
            logging.enable_progress_bar()
