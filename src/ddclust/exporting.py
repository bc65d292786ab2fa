"""A fitted clusterer as one network from items to labels and probabilities, for ONNX and torch.export.

All that ``predict_proba`` does is in it: scaling, layout, the networks, merging, the vote and the calibration. So whoever runs the
file needs neither ddclust nor the numbers that a fit has found.
"""

from __future__ import annotations

import copy
import io
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ddclust.choosing.calibration import LEAST
from ddclust.data.batches import Scaling, in_network_layout
from ddclust.storage.atomic import write_file

INPUT_TYPES = {"uint8": torch.uint8, "float32": torch.float32, "float64": torch.float64}
OUTPUTS = ["labels", "probabilities"]


class ExportError(ValueError):
    """A model that cannot be exported."""


class MissingOnnxError(ImportError):
    """What writes ONNX files is not installed."""


class ExportedModel(nn.Module):
    """From items, or from each view of them, to ``(labels, probabilities)`` as ``predict`` and ``predict_proba`` give them.

    Parameters
    ----------
    modules : sequence of nn.Module
        The networks that vote; they are copied to the CPU.
    orders, groups : sequence of ndarray
        For each network the order of its outputs, and the cluster that each of the ordered outputs belongs to.
    scaling : Scaling
    temperature : float
    input_type : torch.dtype
        In which items come.
    """

    shift: Tensor
    scale: Tensor

    def __init__(
        self,
        modules: Sequence[nn.Module],
        orders: Sequence[NDArray[np.int64]],
        groups: Sequence[NDArray[np.int64]],
        scaling: Scaling,
        temperature: float,
        input_type: torch.dtype,
    ) -> None:
        super().__init__()
        self.networks = nn.ModuleList([_plain_copy(module) for module in modules])
        self.item_shape = scaling.item_shape
        self.temperature = float(temperature)
        self.input_type = input_type
        exact = torch.float32 if input_type == torch.uint8 else input_type
        self.register_buffer("shift", torch.from_numpy(np.asarray(scaling.shift)).to(exact))
        self.register_buffer("scale", torch.from_numpy(np.asarray(scaling.scale)).to(exact))
        for number, (order, group) in enumerate(zip(orders, groups, strict=True)):
            parts = torch.zeros(len(order), int(group.max()) + 1)
            parts[torch.from_numpy(order), torch.from_numpy(group)] = 1
            self.register_buffer(
                f"parts{number}", parts
            )  # (outputs, clusters): 1 where an output is part of a cluster
        self.eval()

    def forward(self, *items: Tensor) -> tuple[Tensor, Tensor]:
        x = items[0] if len(items) == 1 else torch.cat([view.flatten(1) for view in items], dim=1)
        x = ((x.to(self.scale.dtype) - self.shift) * self.scale).float()
        x = in_network_layout(x, self.item_shape)
        members = [
            network(x)[1].softmax(dim=1) @ getattr(self, f"parts{number}")
            for number, network in enumerate(self.networks)
        ]
        labels, assignments = voted(members)
        return labels, assignments if self.temperature == 1 else tempered(assignments, self.temperature)


def voted(members: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The vote of aligned soft assignments and the mean of those who voted for the winner.

    The same as :func:`ddclust.choosing.consensus.combine`, of tensors. A tie goes to the first.

    Examples
    --------
    >>> labels, mean = voted([torch.tensor([[0.9, 0.1]]), torch.tensor([[0.4, 0.6]]), torch.tensor([[0.7, 0.3]])])
    >>> labels.tolist(), mean.round(decimals=2).tolist()
    ([0], [[0.800000011920929, 0.20000000298023224]])
    """
    if len(members) == 1:
        return members[0].argmax(dim=1), members[0]
    aligned = torch.stack([member.argmax(dim=1) for member in members])  # (voters, n)
    supporters = (aligned[:, None] == aligned[None]).sum(dim=0)  # (voters, n): for each vote, how many agree
    most = supporters.amax(dim=0)
    tied = (supporters == most).sum(dim=0) > most
    winner = torch.where(tied, torch.zeros_like(most), supporters.argmax(dim=0))
    labels = aligned.gather(0, winner[None])[0]
    counts = (aligned == labels).float()  # (voters, n)
    total = (torch.stack(members) * counts[:, :, None]).sum(dim=0)
    return labels, total / counts.sum(dim=0)[:, None]


def tempered(assignments: Tensor, temperature: float) -> Tensor:
    """softmax(log p / T), row by row, as :func:`ddclust.choosing.calibration.tempered`."""
    logs = assignments.double().clamp_min(LEAST).log()
    return (logs / temperature).softmax(dim=1).float()


def write_onnx(path: str | os.PathLike[str], model: ExportedModel, shapes: Sequence[tuple[int, ...]]) -> None:
    """Write an ONNX file whose inputs are batches of items of these shapes, of any length."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingOnnxError(f"ONNX files need {error.name}; run: pip install onnx onnxscript.") from error
    with _quiet_exporter():
        program = torch.onnx.export(
            model,
            _example(model, shapes),
            dynamo=True,
            input_names=_input_names(shapes),
            output_names=OUTPUTS,
            dynamic_shapes=_any_length(shapes),
            verbose=False,
        )
    assert program is not None
    write_file(Path(path), program.model_proto.SerializeToString())


def write_torch(
    path: str | os.PathLike[str], model: ExportedModel, shapes: Sequence[tuple[int, ...]]
) -> None:
    """Write a program of torch.export (``.pt2``) that takes batches of items of these shapes, of any length."""
    program = torch.export.export(model, _example(model, shapes), dynamic_shapes=_any_length(shapes))
    content = io.BytesIO()
    torch.export.save(program, content)
    write_file(Path(path), content.getvalue())


def _plain_copy(module: nn.Module) -> nn.Module:
    """A copy on the CPU, ready to predict, whose weights lie in memory as files hold them."""
    return copy.deepcopy(module).cpu().to(memory_format=torch.contiguous_format).eval()  # type: ignore[call-overload]


def _example(model: ExportedModel, shapes: Sequence[tuple[int, ...]]) -> tuple[Tensor, ...]:
    return tuple(torch.zeros(3, *shape, dtype=model.input_type) for shape in shapes)


def _input_names(shapes: Sequence[tuple[int, ...]]) -> list[str]:
    return ["X"] if len(shapes) == 1 else [f"view{number}" for number in range(len(shapes))]


def _any_length(shapes: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    n = torch.export.Dim("n")
    return {"items": tuple({0: n} for _ in shapes)}


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Nothing of what the exporter says of itself."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logger.setLevel(level)
