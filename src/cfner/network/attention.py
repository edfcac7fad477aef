"""Attention in 32 bits, for training in bf16 on a processor.

There, torch's fused attention has a backward pass in bf16 that takes six times as long as in 32 bits. All
other products of the encoder are faster in bf16.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

IN_32_BITS: Final = "sdpa_in_32_bits"  # as the implementation of an encoder's attention


def _in_32_bits(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **more: Any,
) -> tuple[Tensor, None]:
    if attention_mask is not None and attention_mask.is_floating_point():
        attention_mask = attention_mask.float()
    with torch.autocast(query.device.type, enabled=False):
        read, _ = sdpa_attention_forward(
            module, query.float(), key.float(), value.float(), attention_mask, **more
        )
    return read.to(query.dtype), None


AttentionInterface.register(IN_32_BITS, _in_32_bits)
AttentionMaskInterface.register(IN_32_BITS, sdpa_mask)
