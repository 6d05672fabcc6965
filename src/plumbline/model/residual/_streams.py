"""Connects one sublayer to several residual streams (Zhu et al. 2024, Hyper-Connections)."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.component import build
from plumbline.model.float32_widening import widen, without_autocast
from plumbline.model.residual._sources import SourceMixture
from plumbline.model.roles import ConstantInit, ExplicitInit, parameter
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
        identity = [1.0 if row == column else 0.0 for row in range(streams) for column in range(streams)]
        zero = ConstantInit(value=0.0)
        self.norm = build("norm", model, layer, model.width)
        self.read_static = parameter(streams, role="scalar", layer=layer, init=ExplicitInit(values=tuple(reads)))
        self.mix_static = parameter(
            streams, streams, role="scalar", layer=layer, init=ExplicitInit(values=tuple(identity))
        )
        self.write_static = parameter(streams, role="scalar", layer=layer, init=ConstantInit(value=1.0))
        self.read_dynamic = parameter(model.width, 1, role="stream_mixing", layer=layer, init=zero)
        self.mix_dynamic = parameter(model.width, streams, role="stream_mixing", layer=layer, init=zero)
        self.write_dynamic = parameter(model.width, 1, role="stream_mixing", layer=layer, init=zero)
        scale = ConstantInit(value=0.01)
        self.read_scale = parameter(1, role="scalar", layer=layer, init=scale)
        self.mix_scale = parameter(1, role="scalar", layer=layer, init=scale)
        self.write_scale = parameter(1, role="scalar", layer=layer, init=scale)

    @property
    def products_per_token(self) -> int:
        """Multiplications in matrix products, per token: three dynamic maps and the mixing of streams."""
        streams, width = self.mix_static.shape[0], self.mix_dynamic.shape[0]
        return streams * width * (streams + 2) + streams * streams * width

    def weights(self, streams_BTSD: torch.Tensor) -> torch.Tensor:
        """The weights (B, T, S, 1 + S + 1) of each stream, in float32 or wider, by one norm and one product.

        Along the last dimension: how much of the stream is read, how much of it goes to each stream, and how much of
        the sublayer's output it takes.
        """
        static_SX = torch.cat([self.read_static[:, None], self.mix_static, self.write_static[:, None]], dim=1)
        dynamic_DX = torch.cat([self.read_dynamic, self.mix_dynamic, self.write_dynamic], dim=1)
        scale_X = torch.cat([self.read_scale, self.mix_scale.expand(len(self.mix_static)), self.write_scale])
        with without_autocast(streams_BTSD):
            normed_YD = self.norm(widen(streams_BTSD)).flatten(0, -2)
            # So few columns are made several times as fast as rows.
            moved_YX = (widen(dynamic_DX).T @ normed_YD.T).T.tanh()
        return torch.addcmul(widen(static_SX), widen(scale_X), moved_YX.unflatten(0, streams_BTSD.shape[:-1]))

    def read(self, streams_BTSD: torch.Tensor, weights_BTSX: torch.Tensor) -> torch.Tensor:
        """The sublayer's input (B, T, D): the weighted sum of the streams."""
        return SourceMixture.apply(weights_BTSX[..., 0], *streams_BTSD.unbind(2))

    def write(self, streams_BTSD: torch.Tensor, weights_BTSX: torch.Tensor, branch_BTD: torch.Tensor) -> torch.Tensor:
        """The streams (B, T, S, D) after they were mixed and the sublayer's output was added."""
        mix_BTSS, write_BTS1 = weights_BTSX[..., 1:-1], weights_BTSX[..., -1:]
        # Row s of the mixing weights says how much of stream s goes to each stream.
        with without_autocast(streams_BTSD):
            mixed_BTSD = mix_BTSS.transpose(-1, -2) @ widen(streams_BTSD)
        return torch.addcmul(mixed_BTSD, write_BTS1, widen(branch_BTD)[:, :, None]).to(streams_BTSD.dtype)
