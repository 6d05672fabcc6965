"""Computes softpick as its authors have it, in Triton: weights relu(e^z - 1) / (sum |e^z - 1| + epsilon).

With m = max(0, max z) of a row, all terms are multiplied by e^-m, so that nothing overflows; epsilon is added then:

    D = sum_j |e^(z_j - m) - e^-m| + epsilon    w = relu(e^(z - m) - e^-m) / D    o = w v

When m rises during the walk over the keys, all sums so far are multiplied by the same factor: forward is one walk. Of a
row only L = m + log D is kept beside o, for w = relu(e^(z - L) - e^-L). Backward, with do the gradient of o:

    dv = w^T do    dp = do v^T    dz = e^(z - L) (step dp - sign(z) delta)    delta = sum_j w_j dp_j = do . o

step is 1 where z > 0. A key that is not seen has z = 0, which counts for nothing in either sum.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from plumbline.model.kernels.tiles import (
    LOG2E,
    BlockSizes,
    blocks_for,
    by_token,
    empty_by_token,
    grid,
    keys_held,
    load_tile,
    numbers_of,
    origin,
    product,
    queries_held,
    rows_apart,
    single,
    sizes,
    store_tile,
    strides,
)


def softpick_original(
    q_BHTW: torch.Tensor,
    k_BGTW: torch.Tensor,
    v_BGTW: torch.Tensor,
    *,
    scale: float,
    epsilon: float,
    blocks: BlockSizes | None = None,
) -> torch.Tensor:
    """Causal softpick attention (B, H, T, W); `epsilon` is added to each denominator."""
    return _Original.apply(q_BHTW, k_BGTW, v_BGTW, scale, epsilon, blocks or blocks_for("softpick_original", q_BHTW))


@triton.jit
def _scores(left_XW, right_YW, scale, seen_XY, EDGE: tl.constexpr, PRECISION: tl.constexpr):
    """Scaled dot products (X, Y); 0 where a query does not see a key."""
    z_XY = product(left_XW, tl.trans(right_YW), PRECISION) * scale
    if EDGE:
        z_XY = tl.where(seen_XY, z_XY, 0.0)
    return z_XY


@triton.jit
def _forward_step(
    start, top_M, total_M, o_MW, q_MW, rows, k, v, k_t, v_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = _scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    higher_M = tl.maximum(top_M, tl.max(z_MN, 1))
    factor_M = tl.exp2(top_M - higher_M)
    terms_MN = tl.exp2(z_MN - higher_M[:, None]) - tl.exp2(-higher_M)[:, None]
    o_MW = o_MW * factor_M[:, None] + product(tl.maximum(terms_MN, 0.0), v_NW, PRECISION)
    return higher_M, total_M * factor_M + tl.sum(tl.abs(terms_MN), 1), o_MW


@triton.jit
def _forward(
    q, k, v, o, log_sum, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, epsilon, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    scale, epsilon = single(scale), single(epsilon)
    first, batch, head = queries_held(HEADS, HELD)
    group = head // (HEADS // GROUPS)
    rows = first + tl.arange(0, HELD)
    q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    scale *= LOG2E
    top_M = tl.zeros((HELD,), tl.float32)
    total_M = tl.zeros((HELD,), tl.float32)
    o_MW = tl.zeros((HELD, PADDED), tl.float32)
    for start in range(0, first, WALKED):
        top_M, total_M, o_MW = _forward_step(
            start, top_M, total_M, o_MW, q_MW, rows, k, v, k_t, v_t, scale, length,
            WIDTH, PADDED, WALKED, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        top_M, total_M, o_MW = _forward_step(
            start, top_M, total_M, o_MW, q_MW, rows, k, v, k_t, v_t, scale, length,
            WIDTH, PADDED, WALKED, True, PRECISION,
        )  # fmt: skip
    total_M += epsilon
    per_row = HEADS * WIDTH
    o = origin(o, batch, head, length * per_row, WIDTH)
    store_tile(o, o_MW / total_M[:, None], rows, per_row, length, WIDTH, PADDED)
    row = numbers_of(rows, length)
    tl.store(log_sum + row, top_M + tl.log2(total_M), mask=rows < length)


@triton.jit
def _gradient(z, log_sum, delta, dp):
    """w and dz of a tile; `log_sum` and `delta` lie along its queries."""
    e = tl.exp2(z - log_sum)
    w = tl.maximum(e - tl.exp2(-log_sum), 0.0)
    dz = e * tl.where(z > 0, dp - delta, tl.where(z < 0, delta, 0.0))
    return w, dz


@triton.jit
def _queries_step(
    start, dq_MW, q_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = _scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    dp_MN = product(do_MW, tl.trans(v_NW), PRECISION)
    _, dz_MN = _gradient(z_MN, log_M[:, None], delta_M[:, None], dp_MN)
    return dq_MW + product(dz_MN, k_NW, PRECISION)


@triton.jit
def _queries(
    q, k, v, o, do, log_sum, delta, dq, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, epsilon, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dq, and delta for the other kernel."""
    scale = single(scale)
    first, batch, head = queries_held(HEADS, HELD)
    group = head // (HEADS // GROUPS)
    rows = first + tl.arange(0, HELD)
    per_row = HEADS * WIDTH
    q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    o_MW = load_tile(origin(o, batch, head, length * per_row, WIDTH), rows, per_row, length, WIDTH, PADDED)
    do_MW = load_tile(origin(do, batch, head, length * per_row, WIDTH), rows, per_row, length, WIDTH, PADDED)
    row = numbers_of(rows, length)
    log_M = tl.load(log_sum + row, mask=rows < length, other=0.0)
    delta_M = tl.sum(do_MW.to(tl.float32) * o_MW.to(tl.float32), 1)
    tl.store(delta + row, delta_M, mask=rows < length)
    dq_MW = tl.zeros((HELD, PADDED), tl.float32)
    for start in range(0, first, WALKED):
        dq_MW = _queries_step(
            start, dq_MW, q_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale * LOG2E, length,
            WIDTH, PADDED, WALKED, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        dq_MW = _queries_step(
            start, dq_MW, q_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale * LOG2E, length,
            WIDTH, PADDED, WALKED, True, PRECISION,
        )  # fmt: skip
    dq = origin(dq, batch, head, length * per_row, WIDTH)
    store_tile(dq, dq_MW * scale, rows, per_row, length, WIDTH, PADDED)


@triton.jit
def _keys_step(
    start, dk_NW, dv_NW, k_NW, v_NW, keys, q, do, log_sum, delta, q_t, do_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    # Rows beyond the length have q = do = 0 and so give nothing.
    rows = start + tl.arange(0, WALKED)
    q_MW = load_tile(q, rows, q_t, length, WIDTH, PADDED)
    do_MW = load_tile(do, rows, do_t, length, WIDTH, PADDED)
    log_M = tl.load(log_sum + rows, mask=rows < length, other=0.0)
    delta_M = tl.load(delta + rows, mask=rows < length, other=0.0)
    z_NM = _scores(k_NW, q_MW, scale, keys[:, None] <= rows[None, :], EDGE, PRECISION)
    dp_NM = product(v_NW, tl.trans(do_MW), PRECISION)
    w_NM, dz_NM = _gradient(z_NM, log_M[None, :], delta_M[None, :], dp_NM)
    return dk_NW + product(dz_NM, q_MW, PRECISION), dv_NW + product(w_NM, do_MW, PRECISION)


@triton.jit
def _keys(
    q, k, v, do, log_sum, delta, dk, dv, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, epsilon, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dk and dv."""
    scale = single(scale)
    first, batch, group = keys_held(GROUPS, HELD)
    keys = first + tl.arange(0, HELD)
    k_NW = load_tile(origin(k, batch, group, k_b, k_h), keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(origin(v, batch, group, v_b, v_h), keys, v_t, length, WIDTH, PADDED)
    dk_NW = tl.zeros((HELD, PADDED), tl.float32)
    dv_NW = tl.zeros((HELD, PADDED), tl.float32)
    per_row = HEADS * WIDTH
    for head in range(group * (HEADS // GROUPS), (group + 1) * (HEADS // GROUPS)):
        q_head = origin(q, batch, head, q_b, q_h)
        do_head = origin(do, batch, head, length * per_row, WIDTH)
        log_head = origin(log_sum, batch, head, length * HEADS, length)
        delta_head = origin(delta, batch, head, length * HEADS, length)
        for start in range(first, tl.minimum(first + HELD, length), WALKED):
            dk_NW, dv_NW = _keys_step(
                start, dk_NW, dv_NW, k_NW, v_NW, keys, q_head, do_head, log_head, delta_head, q_t, per_row,
                scale * LOG2E, length, WIDTH, PADDED, WALKED, True, PRECISION,
            )  # fmt: skip
        for start in range(first + HELD, length, WALKED):
            dk_NW, dv_NW = _keys_step(
                start, dk_NW, dv_NW, k_NW, v_NW, keys, q_head, do_head, log_head, delta_head, q_t, per_row,
                scale * LOG2E, length, WIDTH, PADDED, WALKED, False, PRECISION,
            )  # fmt: skip
    per_row = GROUPS * WIDTH
    dk, dv = origin(dk, batch, group, length * per_row, WIDTH), origin(dv, batch, group, length * per_row, WIDTH)
    store_tile(dk, dk_NW * scale, keys, per_row, length, WIDTH, PADDED)
    store_tile(dv, dv_NW, keys, per_row, length, WIDTH, PADDED)


class _Original(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q_BHTW, k_BGTW, v_BGTW, scale: float, epsilon: float, blocks: BlockSizes) -> torch.Tensor:
        q, k, v = (rows_apart(x) for x in (q_BHTW, k_BGTW, v_BGTW))
        o, log_sum = empty_by_token(q), q.new_empty(q.shape[:3], dtype=torch.float32)
        constants, numbers = sizes(q, k, blocks), (*strides(q, k, v), scale, epsilon, q.shape[2])
        _forward[grid(q, blocks)](q, k, v, o, log_sum, *numbers, **constants)
        ctx.save_for_backward(q, k, v, o, log_sum)
        ctx.constants, ctx.numbers, ctx.blocks = constants, numbers, blocks
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do_BHTW: torch.Tensor):
        q, k, v, o, log_sum = ctx.saved_tensors
        do, delta = by_token(do_BHTW), torch.empty_like(log_sum)
        dq, dk, dv = empty_by_token(q), empty_by_token(k), empty_by_token(v)
        _queries[grid(q, ctx.blocks)](q, k, v, o, do, log_sum, delta, dq, *ctx.numbers, **ctx.constants)
        _keys[grid(k, ctx.blocks)](q, k, v, do, log_sum, delta, dk, dv, *ctx.numbers, **ctx.constants)
        return dq, dk, dv, None, None, None
