"""Implements a probe of whether the immature part of the residual stream is local to queries and keys."""

from __future__ import annotations

import contextlib

import torch

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.evaluate.probes._decoder import ProbedDecoder
from plumbline.evaluate.probes._forward_pass import observe
from plumbline.model.decoder import Decoder
from plumbline.specs.components import component
from plumbline.specs.spec import Precision


@component
class Locality(Probe):
    """lambda_S = |X W_S W_S^T P|_F / (|X P|_F |W_S|_op^2) of each head of the upper half, S queries or keys.

    X (tokens x D) is what a layer's attention is given; W_S (D x W) is a head's weight, transposed; |.|_op is the
    largest singular value. P projects onto the residual directions that are not settled yet. The study never says how
    it finds them. Here they are those in which X still moves: D = X' - X on the same tokens, X' at the point
    `against`, and P spans the leading right singular vectors of D, as few as hold the share `energy` of |D|_F^2. Every
    layer has a P of its own.

    - ``locality_query``, ``locality_key``: lambda by layer and head (of keys: by key head). The null is a random
      projector of the same rank: the mean over `draws` of them, from `seed`. Values below one say little by
      themselves; at random weights the null is about 0.17.
    - ``projector_share``: |X P|_F^2 / |X|_F^2 by layer, and its mean over layers as the number of no layer; null: the
      rank over D, which a random projector has. ``projector_rank``: P's rank.
    - ``locality_query_calibrated``, ``locality_key_calibrated``, and so a projector's rank: the same with as many
      vectors as it takes for P to hold `share` of |X|_F^2, which the study prints.

    Only sums over tokens of X^T X and D^T D (D x D) are kept, in float64: no sum runs over tokens but these. At the
    point `against` itself nothing moves, and there are no values. Source: premature study, appendix I, eq. 31-33.
    """

    def __init__(
        self,
        *,
        against: float = 1.0,
        energy: float = 0.9,
        share: float = 0.18,
        draws: int = 4,
        seed: int = 0,
    ) -> None:
        self.against = against
        self.energy, self.share, self.draws, self.seed = energy, share, draws, seed
        self.stream: dict[int, torch.Tensor] = {}
        self.drift: dict[int, torch.Tensor] = {}
        self.later: dict[int, torch.Tensor] = {}

    def begin(self, subject: ProbedModel, separator: int | None) -> None:
        """Choose the layers of the upper half, and check that both points have as many layers.

        Raises:
            PlumblineError: they do not.
        """
        assert self.other is not None, "locality needs the model at another point"
        if self.other.layers != subject.layers:
            raise PlumblineError(
                f"locality compares two points of one run; these models have {subject.layers} and "
                f"{self.other.layers} layers"
            )
        self.upper = subject.upper

    def sequence(self, inputs_BT: torch.Tensor, targets_BT: torch.Tensor) -> None:
        """Feed the tokens to the model at the other point, and keep what its attentions of the upper half are given."""

        def keep(layer: int, x_BTD: torch.Tensor) -> None:
            self.later[layer] = x_BTD.double().flatten(0, -2)

        with contextlib.ExitStack() as stack:
            for layer in self.upper:
                stack.enter_context(self.other.watch("attention_input", layer, keep))
            self.other.logits(inputs_BT)

    def attention_input(self, layer: int, x_BTD: torch.Tensor) -> None:
        """Add up X^T X and D^T D of a layer of the upper half, D the difference between the two points."""
        if layer not in self.upper:
            return
        x_TD = x_BTD.double().flatten(0, -2)
        drift_TD = self.later.pop(layer) - x_TD
        self.stream[layer] = self.stream.get(layer, 0) + x_TD.T @ x_TD
        self.drift[layer] = self.drift.get(layer, 0) + drift_TD.T @ drift_TD

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The localities of each head of the upper half, and the projectors' ranks and shares."""
        probe_values: list[ProbeValue] = []
        shares = []
        for layer, stream_DD in self.stream.items():
            if not bool(self.drift[layer].trace() > 0):
                continue
            basis_DD = leading_directions(self.drift[layer])
            held_D = energies(self.drift[layer], basis_DD)
            in_stream_D = energies(stream_DD, basis_DD)
            ranks = {"": find_rank(held_D, self.energy), "_calibrated": find_rank(in_stream_D, self.share)}
            for suffix, rank in ranks.items():
                probe_values.append(ProbeValue(probe=f"projector_rank{suffix}", layer=layer, value=float(rank)))
                probe_values += self._locality_values(model, layer, stream_DD, basis_DD[:, :rank], suffix)
            share = float(in_stream_D[: ranks[""]].sum() / stream_DD.trace())
            shares.append((share, ranks[""] / len(stream_DD)))
            probe_values.append(ProbeValue(probe="projector_share", layer=layer, value=share, null=shares[-1][1]))
        if shares:
            share, null = (sum(values) / len(values) for values in zip(*shares))
            probe_values.append(ProbeValue(probe="projector_share", value=share, null=null))
        return probe_values

    def _locality_values(
        self, model: ProbedModel, layer: int, stream_DD: torch.Tensor, basis_DR: torch.Tensor, suffix: str
    ) -> list[ProbeValue]:
        """The ratios of every head for the projector onto the span of `basis_DR`, and their nulls."""
        generator = torch.Generator().manual_seed(self.seed * 100_003 + layer)
        random = [_random_directions(basis_DR, generator) for _ in range(self.draws)]
        probe_values = []
        for name, weight_NWD in zip(("query", "key"), model.query_key_weights(layer)):
            values = locality_ratios(stream_DD, weight_NWD, basis_DR).tolist()
            nulls = torch.stack([locality_ratios(stream_DD, weight_NWD, other) for other in random]).mean(0).tolist()
            probe_values += [
                ProbeValue(probe=f"locality_{name}{suffix}", layer=layer, head=head, value=value, null=null)
                for head, (value, null) in enumerate(zip(values, nulls))
            ]
        return probe_values


def locality_ratios(stream_DD: torch.Tensor, weight_NWD: torch.Tensor, basis_DR: torch.Tensor) -> torch.Tensor:
    """Locality lambda (N,) of each head's weight for the projector onto the orthonormal columns of `basis_DR`.

    `stream_DD` is X^T X, so that |X A|_F^2 is the trace of A^T X^T X A.
    """
    projected = energies(stream_DD, basis_DR).sum()
    seen_NWR = weight_NWD @ basis_DR
    gram_NWW = weight_NWD @ stream_DD @ weight_NWD.transpose(-1, -2)
    written_N = (seen_NWR * (gram_NWW @ seen_NWR)).sum((-1, -2)).clamp(min=0)
    return written_N.sqrt() / (projected.sqrt() * torch.linalg.svdvals(weight_NWD)[:, 0].square())


def energies(gram_DD: torch.Tensor, basis_DR: torch.Tensor) -> torch.Tensor:
    """Energy |X v|^2 (R,) of each column v of `basis_DR`; `gram_DD` is X^T X."""
    return (basis_DR * (gram_DD @ basis_DR)).sum(0)


def leading_directions(gram_DD: torch.Tensor) -> torch.Tensor:
    """The right singular vectors of a matrix X as columns, those with most energy first; `gram_DD` is X^T X."""
    return torch.linalg.eigh(gram_DD).eigenvectors.flip(-1)


def find_rank(energies_D: torch.Tensor, share: float) -> int:
    """The number of leading directions that hold `share` of all energy; at least one."""
    held_D = energies_D.cumsum(0)
    return min(int((held_D < share * held_D[-1]).sum()) + 1, len(held_D))


def _random_directions(like_DR: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Orthonormal columns in as many random directions, drawn on the CPU."""
    drawn_DR = torch.randn(like_DR.shape, generator=generator, dtype=torch.float64)
    return torch.linalg.qr(drawn_DR).Q.to(like_DR.device)


def read_locality(
    model: Decoder, other: Decoder, tokens_BT: torch.Tensor, *, precision: Precision = "float32", **options: float
) -> list[ProbeValue]:
    """Read the probe on `model`, with `other` as the later point; `options` are those of `Locality`."""
    probe = Locality(**options)
    probe.other = ProbedDecoder(other, precision)
    return observe(ProbedDecoder(model, precision), [probe], tokens_BT)
