"""The precision in which networks are trained."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


def outputs_in(precision: str, module: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    """The outputs of a network for a batch, in the batch's own dtype.

    With ``"bfloat16"`` matrix products and convolutions are computed in bfloat16, by torch's autocast. Weights and
    whatever follows the network stay as they are.

    Examples
    --------
    >>> twice = nn.ModuleList([nn.Linear(3, 2)])
    >>> twice.forward = lambda x: (x, twice[0](x))
    >>> [output.dtype for output in outputs_in("bfloat16", twice, torch.ones(4, 3))]
    [torch.float32, torch.float32]
    """
    if precision == "float32":
        return module(x)
    with torch.autocast(x.device.type, torch.bfloat16):
        outputs = module(x)
    return tuple(output.to(x.dtype) for output in outputs)


def is_native(precision: str, device: torch.device) -> bool:
    """Whether a device computes in a precision by instructions of its own rather than by emulation."""
    if precision == "float32":
        return True
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        found: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()  # newer versions have it
        return any(found.get(name, False) for name in ("avx512_bf16", "amx_bf16", "arm_bf16"))
    return False
