"""Counts a model's parameters by closed formulas, from a printed configuration. Needs no torch.

Every count is an exact integer. The sizes themselves are the paper's (`published/setup.yaml`), and how a paper is
interpreted where it leaves something open stands in its study's audit.
"""

from __future__ import annotations

from dataclasses import dataclass

from plumbline.core.errors import PlumblineError


@dataclass(frozen=True, kw_only=True, slots=True)
class DecoderSize:
    """Sizes of a decoder with grouped queries.

    `ffn_matrices` is 3 for a gated layer, 2 for a single branch; `norm_vectors` is 2 for a norm with gain and bias,
    1 for a gain alone; `learned_positions` is the number of position vectors.
    """

    layers: int
    width: int
    heads: int
    key_value_heads: int
    head_width: int
    ffn_width: int
    vocabulary: int
    ffn_matrices: int = 3
    norm_vectors: int = 1
    biases: bool = False
    learned_positions: int = 0
    tied: bool = True
    query_key_norm: bool = False
    learned_query: bool = True

    @property
    def query_width(self) -> int:
        """Width of all query heads side by side."""
        return self.heads * self.head_width

    @property
    def key_width(self) -> int:
        """Width of all key (or value) heads side by side."""
        return self.key_value_heads * self.head_width

    def attention(self) -> int:
        """Parameters of one layer's attention: projections with biases, and the norm of queries and keys, if any."""
        query = self.width * self.query_width if self.learned_query else 0
        matrices = query + 2 * self.width * self.key_width + self.query_width * self.width
        biases = self.query_width + 2 * self.key_width + self.width if self.biases else 0
        return matrices + biases + (2 * self.head_width if self.query_key_norm else 0)

    def feed_forward(self) -> int:
        """Parameters of one layer's feed-forward maps, biases included."""
        biases = (self.ffn_matrices - 1) * self.ffn_width + self.width if self.biases else 0
        return self.ffn_matrices * self.width * self.ffn_width + biases

    def body(self) -> int:
        """All parameters but the token and position embeddings."""
        norms = self.norm_vectors * self.width
        return self.layers * (self.attention() + self.feed_forward() + 2 * norms) + norms

    def total(self) -> int:
        """All parameters; an output head that is tied to the embedding counts once."""
        embeddings = self.vocabulary * self.width * (1 if self.tied else 2)
        return self.body() + embeddings + self.learned_positions * self.width


def head_width(width: int, heads: int) -> int:
    """Width of one of `heads` heads that share the model's width evenly.

    Raises:
        PlumblineError: the heads do not share it evenly.
    """
    if width % heads:
        raise PlumblineError(f"setup.yaml: {heads} heads do not share a width of {width} evenly; fix one of the two")
    return width // heads
