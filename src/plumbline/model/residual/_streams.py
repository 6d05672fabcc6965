"""One sublayer's connection to several residual streams (Zhu et al. 2024, Hyper-Connections)."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.component import build
from plumbline.model.precision import widened, without_autocast
from plumbline.model.roles import Constant, Rows, parameter
from plumbline.specs.spec import ModelSpec


class StreamConnection(nn.Module):
    """Weights by which a sublayer reads S streams, mixes them among each other and writes its output back.

    Each weight is a static part and a dynamic one, scale * tanh(norm(stream) W). At the start the sublayer reads the
    stream of its index modulo S, the streams are not mixed, all take the whole output, W is 0 and the scales 0.01.
    """

    def __init__(self, model: ModelSpec, sublayer: int, streams: int) -> None:
        super().__init__()
        layer = sublayer // 2
        reads = [1.0 if stream == sublayer % streams else 0.0 for stream in range(streams)]
        keeps = [1.0 if row == column else 0.0 for row in range(streams) for column in range(streams)]
        zero = Constant(value=0.0)
        self.norm = build("norm", model, layer, model.width)
        self.read_static = parameter(streams, role="scalar", layer=layer, init=Rows(values=tuple(reads)))
        self.mix_static = parameter(streams, streams, role="scalar", layer=layer, init=Rows(values=tuple(keeps)))
        self.write_static = parameter(streams, role="scalar", layer=layer, init=Constant(value=1.0))
        self.read_dynamic = parameter(model.width, 1, role="stream_mixing", layer=layer, init=zero)
        self.mix_dynamic = parameter(model.width, streams, role="stream_mixing", layer=layer, init=zero)
        self.write_dynamic = parameter(model.width, 1, role="stream_mixing", layer=layer, init=zero)
        scale = Constant(value=0.01)
        self.read_scale = parameter(1, role="scalar", layer=layer, init=scale)
        self.mix_scale = parameter(1, role="scalar", layer=layer, init=scale)
        self.write_scale = parameter(1, role="scalar", layer=layer, init=scale)

    @property
    def products_per_token(self) -> int:
        """Multiplications in matrix products, for each token: three dynamic maps and the mixing of streams."""
        streams, width = self.mix_static.shape[0], self.mix_dynamic.shape[0]
        return streams * width * (streams + 2) + streams * streams * width

    def read(self, streams_BTSD: torch.Tensor) -> torch.Tensor:
        """What the sublayer reads (B, T, D)."""
        weights_BTS = (
            widened(self.read_static) + self._dynamic(streams_BTSD, self.read_dynamic, self.read_scale)[..., 0]
        )
        return (weights_BTS[..., None] * streams_BTSD).sum(dim=2).to(streams_BTSD.dtype)

    def write(self, streams_BTSD: torch.Tensor, branch_BTD: torch.Tensor) -> torch.Tensor:
        """The streams (B, T, S, D) after the sublayer."""
        # Row s of the mixing weights says how much of stream s goes to each stream.
        mix_BTSS = widened(self.mix_static) + self._dynamic(streams_BTSD, self.mix_dynamic, self.mix_scale)
        write_BTS = (
            widened(self.write_static) + self._dynamic(streams_BTSD, self.write_dynamic, self.write_scale)[..., 0]
        )
        with without_autocast(streams_BTSD):
            mixed_BTSD = mix_BTSS.transpose(-1, -2) @ widened(streams_BTSD)
        return (mixed_BTSD + write_BTS[..., None] * branch_BTD[:, :, None]).to(streams_BTSD.dtype)

    def _dynamic(self, streams_BTSD: torch.Tensor, map_DN: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """The dynamic part of weights (B, T, S, N), in float32 or wider."""
        with without_autocast(streams_BTSD):
            return widened(scale) * (self.norm(widened(streams_BTSD)) @ widened(map_DN)).tanh()
