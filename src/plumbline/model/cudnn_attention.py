"""Has torch's fused attention take cuDNN's kernel first where the device has it.

Torch's dispatcher takes the first of its back ends that takes a call, and by itself cuDNN's comes last. It is the same
weights up to rounding as the others.
"""

from __future__ import annotations

import torch

#: cuDNN's kernel, of the back ends of `selection.SDPA`.
CUDNN = "cudnn"
#: The compute capability from which on cuDNN has kernels made for the device; below it flash attention is as fast.
CAPABILITY = (9, 0)
#: Torch's own order.
_USUAL: list[int] = torch._C._get_sdp_priority_order()


def takes_call(dtype: torch.dtype, *, heads: int, groups: int, width: int, context: int) -> bool:
    """Whether this process's CUDA device has cuDNN's attention, and it takes such a causal training call."""
    if dtype not in (torch.bfloat16, torch.float16) or not torch.backends.cudnn.is_available():
        return False
    if torch.cuda.get_device_capability() < CAPABILITY:
        return False
    q_BHTW, k_BGTW = (
        torch.empty(1, count, context, width, dtype=dtype, device="cuda", requires_grad=True)
        for count in (heads, groups)
    )
    call = torch.backends.cuda.SDPAParams(q_BHTW, k_BGTW, k_BGTW, None, 0.0, True, heads != groups)
    return bool(torch.backends.cuda.can_use_cudnn_attention(call))


def order_back_ends(*, cudnn_first: bool) -> None:
    """Have torch's dispatcher try cuDNN's kernel first, or where it tries it by itself."""
    cudnn = int(torch.nn.attention.SDPBackend.CUDNN_ATTENTION)
    other_back_ends = [back_end for back_end in _USUAL if back_end != cudnn]
    torch._C._set_sdp_priority_order([cudnn, *other_back_ends] if cudnn_first else _USUAL)


def version() -> str | None:
    """The version of cuDNN that torch runs by."""
    number = torch.backends.cudnn.version()
    return None if number is None else str(number)
