"""Orthogonalises a matrix by a few matrix products: U V^T of its singular value decomposition U S V^T, nearly."""

from __future__ import annotations

import torch

from plumbline.model.float32_widening import widen

Coefficients = tuple[float, float, float]

#: The quintic of Keller Jordan's Muon (2024), the same in every step, and torch.optim.Muon's: steep at zero rather than
#: convergent; five steps leave singular values between 0.68 and 1.21.
QUINTIC: Coefficients = (3.4445, -4.7750, 2.0315)

#: Polar Express (Amsel et al. 2025): the best quintic of each step for the interval that the one before it leaves; here
#: the five of modded-nanogpt, which the key_norms study's code has: singular values between 0.86 and 1.15.
POLAR_EXPRESS: tuple[Coefficients, ...] = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
)

#: Keeps a matrix of zeros from dividing by zero.
EPS = 1e-7


def orthogonalise(
    matrix: torch.Tensor, coefficients: tuple[Coefficients, ...], margin: float = 1.0, *, narrow: bool = False
) -> torch.Tensor:
    """Return `matrix` (rows, columns) with its singular values moved to about 1, in float32 or wider.

    X <- a X + (b X X^T + c (X X^T)^2) X for each (a, b, c), from X = matrix / (margin |matrix|_F). `narrow`: the
    products, and X between them, are in bfloat16, as in the originals; otherwise all is in float32 or wider.
    """
    wide = widen(matrix)
    tall = wide.shape[0] > wide.shape[1]
    x = wide.T if tall else wide  # the smaller of the two Gram matrices
    x = x / (x.norm() * margin).clamp(min=EPS)
    if narrow:
        x = x.to(torch.bfloat16)
    for a, b, c in coefficients:
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.T if tall else x).to(wide.dtype)
