"""Computes rectified softpick in Triton: relu(softmax(z) - c) v, with c = 1 / n in every row.

    p = softmax(z)    w = relu(p - c)    o = w v    n = i + 1 in row i, or the same in all rows

A weight is known only when its row's sum is, so forward walks over the keys twice: for the maximum m and the sum l of a
row, then for the weights. Rows of equal scores are exactly zero, as p is made as e^(z - m) times 1 / l, which is then
the very number c.

Backward, with step = 1 where p > c and do the gradient of o:

    dv = w^T do    dp = step (do v^T)    dz = p (dp - delta)    delta = sum_j p_j dp_j

Flash attention's delta = do . o is wrong here, for o lacks c in every weight: with u = sum_j step_j v_j it is delta =
do . o + c (do . u). As o = sum step (p - c) v, o + c u is r = sum_j step_j p_j v_j, and delta = do . r. Forward makes r
together with o in its second walk, one product more, and keeps it in o's place, with m and 1 / l of each row; where no
gradient is asked for it makes o alone.
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
    scores,
    single,
    sizes,
    store_tile,
    strides,
    update_softmax,
)


def softpick(
    q_BHTW: torch.Tensor,
    k_BGTW: torch.Tensor,
    v_BGTW: torch.Tensor,
    *,
    scale: float,
    count: float | None,
    blocks: BlockSizes | None = None,
) -> torch.Tensor:
    """Causal rectified softpick attention (B, H, T, W).

    Args:
        scale: multiplies the scores.
        count: n of every row; None: the number of keys that the row's query sees.
    """
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in (q_BHTW, k_BGTW, v_BGTW))
    return _Softpick.apply(q_BHTW, k_BGTW, v_BGTW, scale, count, keep, blocks or blocks_for("softpick", q_BHTW))


@triton.jit
def _threshold(rows, count, VISIBLE: tl.constexpr):
    """c of each row."""
    if VISIBLE:
        return 1.0 / (rows + 1).to(tl.float32)
    return 1.0 / (tl.zeros_like(rows).to(tl.float32) + count)


@triton.jit
def _statistics_step(
    start, top_M, total_M, q_MW, rows, k, k_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    top_M, total_M, _, _ = update_softmax(top_M, total_M, z_MN)
    return top_M, total_M


@triton.jit
def _values_step(
    start, o_MW, r_MW, q_MW, top_M, inverse_M, c_M, rows, k, v, k_t, v_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, KEEP: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    p_MN = tl.exp2(z_MN - top_M[:, None]) * inverse_M[:, None]
    w_MN = p_MN - c_M[:, None]
    o_MW += product(tl.maximum(w_MN, 0.0), v_NW, PRECISION)
    if KEEP:
        r_MW += product(tl.where(w_MN > 0, p_MN, 0.0), v_NW, PRECISION)
    return o_MW, r_MW


@triton.jit
def _forward(
    q, k, v, o, r, top, inverse, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, count, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, VISIBLE: tl.constexpr, KEEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    scale, count = single(scale), single(count)
    first, batch, head = queries_held(HEADS, HELD)
    group = head // (HEADS // GROUPS)
    rows = first + tl.arange(0, HELD)
    q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    scale *= LOG2E
    top_M = tl.full((HELD,), float("-inf"), tl.float32)
    total_M = tl.zeros((HELD,), tl.float32)
    for start in range(0, first, WALKED):
        top_M, total_M = _statistics_step(
            start, top_M, total_M, q_MW, rows, k, k_t, scale, length, WIDTH, PADDED, WALKED, False, PRECISION
        )
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        top_M, total_M = _statistics_step(
            start, top_M, total_M, q_MW, rows, k, k_t, scale, length, WIDTH, PADDED, WALKED, True, PRECISION
        )
    inverse_M, c_M = 1.0 / total_M, _threshold(rows, count, VISIBLE)
    o_MW = tl.zeros((HELD, PADDED), tl.float32)
    r_MW = tl.zeros((HELD, PADDED), tl.float32)
    for start in range(0, first, WALKED):
        o_MW, r_MW = _values_step(
            start, o_MW, r_MW, q_MW, top_M, inverse_M, c_M, rows, k, v, k_t, v_t, scale, length,
            WIDTH, PADDED, WALKED, KEEP, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        o_MW, r_MW = _values_step(
            start, o_MW, r_MW, q_MW, top_M, inverse_M, c_M, rows, k, v, k_t, v_t, scale, length,
            WIDTH, PADDED, WALKED, KEEP, True, PRECISION,
        )  # fmt: skip
    per_row = HEADS * WIDTH
    store_tile(origin(o, batch, head, length * per_row, WIDTH), o_MW, rows, per_row, length, WIDTH, PADDED)
    if KEEP:
        store_tile(origin(r, batch, head, length * per_row, WIDTH), r_MW, rows, per_row, length, WIDTH, PADDED)
        row = numbers_of(rows, length)
        tl.store(top + row, top_M, mask=rows < length)
        tl.store(inverse + row, inverse_M, mask=rows < length)


@triton.jit
def _queries_step(
    start, dq_MW, q_MW, do_MW, top_M, inverse_M, c_M, delta_M, rows, k, v, k_t, v_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    p_MN = tl.exp2(z_MN - top_M[:, None]) * inverse_M[:, None]
    dp_MN = tl.where(p_MN > c_M[:, None], product(do_MW, tl.trans(v_NW), PRECISION), 0.0)
    return dq_MW + product(p_MN * (dp_MN - delta_M[:, None]), k_NW, PRECISION)


@triton.jit
def _queries(
    q, k, v, r, do, top, inverse, delta, dq, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, count, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, VISIBLE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dq, and delta for the other kernel."""
    scale, count = single(scale), single(count)
    first, batch, head = queries_held(HEADS, HELD)
    group = head // (HEADS // GROUPS)
    rows = first + tl.arange(0, HELD)
    per_row = HEADS * WIDTH
    q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    r_MW = load_tile(origin(r, batch, head, length * per_row, WIDTH), rows, per_row, length, WIDTH, PADDED)
    do_MW = load_tile(origin(do, batch, head, length * per_row, WIDTH), rows, per_row, length, WIDTH, PADDED)
    row = numbers_of(rows, length)
    top_M = tl.load(top + row, mask=rows < length, other=0.0)
    inverse_M = tl.load(inverse + row, mask=rows < length, other=0.0)
    c_M = _threshold(rows, count, VISIBLE)
    delta_M = tl.sum(do_MW.to(tl.float32) * r_MW.to(tl.float32), 1)
    tl.store(delta + row, delta_M, mask=rows < length)
    dq_MW = tl.zeros((HELD, PADDED), tl.float32)
    for start in range(0, first, WALKED):
        dq_MW = _queries_step(
            start, dq_MW, q_MW, do_MW, top_M, inverse_M, c_M, delta_M, rows, k, v, k_t, v_t, scale * LOG2E, length,
            WIDTH, PADDED, WALKED, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        dq_MW = _queries_step(
            start, dq_MW, q_MW, do_MW, top_M, inverse_M, c_M, delta_M, rows, k, v, k_t, v_t, scale * LOG2E, length,
            WIDTH, PADDED, WALKED, True, PRECISION,
        )  # fmt: skip
    dq = origin(dq, batch, head, length * per_row, WIDTH)
    store_tile(dq, dq_MW * scale, rows, per_row, length, WIDTH, PADDED)


@triton.jit
def _keys_step(
    start, dk_NW, dv_NW, k_NW, v_NW, keys, q, do, top, inverse, delta, q_t, do_t, scale, count, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, VISIBLE: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    # Rows beyond the length have q = do = 0 and so give nothing.
    rows = start + tl.arange(0, WALKED)
    q_MW = load_tile(q, rows, q_t, length, WIDTH, PADDED)
    do_MW = load_tile(do, rows, do_t, length, WIDTH, PADDED)
    top_M = tl.load(top + rows, mask=rows < length, other=0.0)
    inverse_M = tl.load(inverse + rows, mask=rows < length, other=0.0)
    delta_M = tl.load(delta + rows, mask=rows < length, other=0.0)
    c_M = _threshold(rows, count, VISIBLE)
    z_NM = scores(k_NW, q_MW, scale, keys[:, None] <= rows[None, :], EDGE, PRECISION)
    p_NM = tl.exp2(z_NM - top_M[None, :]) * inverse_M[None, :]
    w_NM = p_NM - c_M[None, :]
    dp_NM = tl.where(w_NM > 0, product(v_NW, tl.trans(do_MW), PRECISION), 0.0)
    dv_NW += product(tl.maximum(w_NM, 0.0), do_MW, PRECISION)
    dk_NW += product(p_NM * (dp_NM - delta_M[None, :]), q_MW, PRECISION)
    return dk_NW, dv_NW


@triton.jit
def _keys(
    q, k, v, do, top, inverse, delta, dk, dv, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, count, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, VISIBLE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dk and dv."""
    scale, count = single(scale), single(count)
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
        top_head = origin(top, batch, head, length * HEADS, length)
        inverse_head = origin(inverse, batch, head, length * HEADS, length)
        delta_head = origin(delta, batch, head, length * HEADS, length)
        for start in range(first, tl.minimum(first + HELD, length), WALKED):
            dk_NW, dv_NW = _keys_step(
                start, dk_NW, dv_NW, k_NW, v_NW, keys, q_head, do_head, top_head, inverse_head, delta_head, q_t,
                per_row, scale * LOG2E, count, length, WIDTH, PADDED, WALKED, VISIBLE, True, PRECISION,
            )  # fmt: skip
        for start in range(first + HELD, length, WALKED):
            dk_NW, dv_NW = _keys_step(
                start, dk_NW, dv_NW, k_NW, v_NW, keys, q_head, do_head, top_head, inverse_head, delta_head, q_t,
                per_row, scale * LOG2E, count, length, WIDTH, PADDED, WALKED, VISIBLE, False, PRECISION,
            )  # fmt: skip
    per_row = GROUPS * WIDTH
    dk, dv = origin(dk, batch, group, length * per_row, WIDTH), origin(dv, batch, group, length * per_row, WIDTH)
    store_tile(dk, dk_NW * scale, keys, per_row, length, WIDTH, PADDED)
    store_tile(dv, dv_NW, keys, per_row, length, WIDTH, PADDED)


class _Softpick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q_BHTW, k_BGTW, v_BGTW, scale: float, count: float | None, keep: bool, blocks: BlockSizes):
        q, k, v = (rows_apart(x) for x in (q_BHTW, k_BGTW, v_BGTW))
        # Where nothing is kept, nothing is written to r and the numbers of rows.
        o, r = empty_by_token(q), empty_by_token(q) if keep else q
        top, inverse = (q.new_empty(q.shape[:3], dtype=torch.float32) for _ in range(2))
        constants = sizes(q, k, blocks) | {"VISIBLE": count is None}
        numbers = (*strides(q, k, v), scale, count or 1.0, q.shape[2])
        _forward[grid(q, blocks)](q, k, v, o, r, top, inverse, *numbers, KEEP=keep, **constants)
        if keep:
            ctx.save_for_backward(q, k, v, r, top, inverse)
            ctx.constants, ctx.numbers, ctx.blocks = constants, numbers, blocks
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do_BHTW: torch.Tensor):
        q, k, v, r, top, inverse = ctx.saved_tensors
        do, delta = by_token(do_BHTW), torch.empty_like(top)
        dq, dk, dv = empty_by_token(q), empty_by_token(k), empty_by_token(v)
        _queries[grid(q, ctx.blocks)](q, k, v, r, do, top, inverse, delta, dq, *ctx.numbers, **ctx.constants)
        _keys[grid(k, ctx.blocks)](q, k, v, do, top, inverse, delta, dk, dv, *ctx.numbers, **ctx.constants)
        return dq, dk, dv, None, None, None, None
