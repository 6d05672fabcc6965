"""Computes sigmoid attention in Triton, which weighs every key on its own.

    g = sigmoid(z + b)           o = (g v) / n     divided, with a learned b for each head
    g = sigmoid(z - log n)       o = g v           else; n = i + 1 in row i, or the same in all rows

No weight depends on another, so that there are no statistics: forward walks over the keys once and keeps its inputs
alone. Backward, with do the gradient of o and h = do / n (or do):

    dv = g^T h    dg = h v^T    dz = g (1 - g) dg    db = the sum of dz over a head's rows and keys

n divides each row, in float32: the products are of do, and 1 / n multiplies what comes of them (g in dv's). db is
summed within a program, which writes its part; the parts are added up in a fixed order.
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
    origin,
    product,
    queries_held,
    rows_apart,
    scores,
    single,
    sizes,
    store_tile,
    strides,
)


def sigmoid_attention(
    q_BHTW: torch.Tensor,
    k_BGTW: torch.Tensor,
    v_BGTW: torch.Tensor,
    bias_H: torch.Tensor | None,
    *,
    scale: float,
    count: float | None,
    blocks: BlockSizes | None = None,
) -> torch.Tensor:
    """Causal sigmoid attention (B, H, T, W), divided by n where there is a bias.

    Args:
        bias_H: one number per head; several heads may share a number by a view of it.
        scale: multiplies the scores.
        count: n of every row; None: the number of keys that the row's query sees.
    """
    return _Sigmoid.apply(q_BHTW, k_BGTW, v_BGTW, bias_H, scale, count, blocks or blocks_for("sigmoid", q_BHTW))


@triton.jit
def _counts(rows, count, VISIBLE: tl.constexpr):
    """n of each row."""
    if VISIBLE:
        return (rows + 1).to(tl.float32)
    return tl.zeros_like(rows).to(tl.float32) + count


@triton.jit
def _gates(z, b, n, DIVIDED: tl.constexpr):
    """g and the factor of its row; z is in base 2, -inf where a key is not seen."""
    if DIVIDED:
        return 1.0 / (1.0 + tl.exp2(-(z + b))), 1.0 / n
    return 1.0 / (1.0 + tl.exp2(tl.log2(n) - z)), tl.full(n.shape, 1.0, tl.float32)


@triton.jit
def _forward_step(
    start, o_MW, q_MW, n_M, b, rows, k, v, k_t, v_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, DIVIDED: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    g_MN, _ = _gates(z_MN, b, n_M[:, None], DIVIDED)
    return o_MW + product(g_MN, v_NW, PRECISION)


@triton.jit
def _forward(
    q, k, v, bias, o, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, count, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, VISIBLE: tl.constexpr, DIVIDED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    scale, count = single(scale), single(count)
    first, batch, head = queries_held(HEADS, HELD)
    group = head // (HEADS // GROUPS)
    rows = first + tl.arange(0, HELD)
    q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    n_M = _counts(rows, count, VISIBLE)
    b = tl.load(bias + head) * LOG2E if DIVIDED else 0.0
    scale *= LOG2E
    o_MW = tl.zeros((HELD, PADDED), tl.float32)
    for start in range(0, first, WALKED):
        o_MW = _forward_step(
            start, o_MW, q_MW, n_M, b, rows, k, v, k_t, v_t, scale, length,
            WIDTH, PADDED, WALKED, DIVIDED, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        o_MW = _forward_step(
            start, o_MW, q_MW, n_M, b, rows, k, v, k_t, v_t, scale, length,
            WIDTH, PADDED, WALKED, DIVIDED, True, PRECISION,
        )  # fmt: skip
    if DIVIDED:
        o_MW = o_MW / n_M[:, None]
    per_row = HEADS * WIDTH
    store_tile(origin(o, batch, head, length * per_row, WIDTH), o_MW, rows, per_row, length, WIDTH, PADDED)


@triton.jit
def _queries_step(
    start, dq_MW, db_M, q_MW, do_MW, n_M, b, rows, k, v, k_t, v_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, DIVIDED: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    g_MN, factor_M1 = _gates(z_MN, b, n_M[:, None], DIVIDED)
    dz_MN = g_MN * (1.0 - g_MN) * product(do_MW, tl.trans(v_NW), PRECISION) * factor_M1
    return dq_MW + product(dz_MN, k_NW, PRECISION), db_M + tl.sum(dz_MN, 1)


@triton.jit
def _queries(
    q, k, v, bias, do, dq, db, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, count, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, VISIBLE: tl.constexpr, DIVIDED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dq, and of db this program's part."""
    scale, count = single(scale), single(count)
    block = tl.num_programs(1) - 1 - tl.program_id(1)
    first = block * HELD
    batch, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    group = head // (HEADS // GROUPS)
    rows = first + tl.arange(0, HELD)
    per_row = HEADS * WIDTH
    q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    do_MW = load_tile(origin(do, batch, head, length * per_row, WIDTH), rows, per_row, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    n_M = _counts(rows, count, VISIBLE)
    b = tl.load(bias + head) * LOG2E if DIVIDED else 0.0
    dq_MW = tl.zeros((HELD, PADDED), tl.float32)
    db_M = tl.zeros((HELD,), tl.float32)
    for start in range(0, first, WALKED):
        dq_MW, db_M = _queries_step(
            start, dq_MW, db_M, q_MW, do_MW, n_M, b, rows, k, v, k_t, v_t, scale * LOG2E, length,
            WIDTH, PADDED, WALKED, DIVIDED, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        dq_MW, db_M = _queries_step(
            start, dq_MW, db_M, q_MW, do_MW, n_M, b, rows, k, v, k_t, v_t, scale * LOG2E, length,
            WIDTH, PADDED, WALKED, DIVIDED, True, PRECISION,
        )  # fmt: skip
    dq = origin(dq, batch, head, length * per_row, WIDTH)
    store_tile(dq, dq_MW * scale, rows, per_row, length, WIDTH, PADDED)
    if DIVIDED:
        tl.store(db + tl.program_id(0) * tl.num_programs(1) + block, tl.sum(db_M, 0))


@triton.jit
def _keys_step(
    start, dk_NW, dv_NW, k_NW, v_NW, keys, q, do, b, q_t, do_t, scale, count, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, VISIBLE: tl.constexpr, DIVIDED: tl.constexpr,
    EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    # Rows beyond the length have q = do = 0 and so give nothing.
    rows = start + tl.arange(0, WALKED)
    q_MW = load_tile(q, rows, q_t, length, WIDTH, PADDED)
    do_MW = load_tile(do, rows, do_t, length, WIDTH, PADDED)
    z_NM = scores(k_NW, q_MW, scale, keys[:, None] <= rows[None, :], EDGE, PRECISION)
    g_NM, factor_1M = _gates(z_NM, b, _counts(rows, count, VISIBLE)[None, :], DIVIDED)
    dz_NM = g_NM * (1.0 - g_NM) * product(v_NW, tl.trans(do_MW), PRECISION) * factor_1M
    return dk_NW + product(dz_NM, q_MW, PRECISION), dv_NW + product(g_NM * factor_1M, do_MW, PRECISION)


@triton.jit
def _keys(
    q, k, v, bias, do, dk, dv, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, count, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, VISIBLE: tl.constexpr, DIVIDED: tl.constexpr, PRECISION: tl.constexpr,
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
        b = tl.load(bias + head) * LOG2E if DIVIDED else 0.0
        for start in range(first, tl.minimum(first + HELD, length), WALKED):
            dk_NW, dv_NW = _keys_step(
                start, dk_NW, dv_NW, k_NW, v_NW, keys, q_head, do_head, b, q_t, per_row, scale * LOG2E, count, length,
                WIDTH, PADDED, WALKED, VISIBLE, DIVIDED, True, PRECISION,
            )  # fmt: skip
        for start in range(first + HELD, length, WALKED):
            dk_NW, dv_NW = _keys_step(
                start, dk_NW, dv_NW, k_NW, v_NW, keys, q_head, do_head, b, q_t, per_row, scale * LOG2E, count, length,
                WIDTH, PADDED, WALKED, VISIBLE, DIVIDED, False, PRECISION,
            )  # fmt: skip
    per_row = GROUPS * WIDTH
    dk, dv = origin(dk, batch, group, length * per_row, WIDTH), origin(dv, batch, group, length * per_row, WIDTH)
    store_tile(dk, dk_NW * scale, keys, per_row, length, WIDTH, PADDED)
    store_tile(dv, dv_NW, keys, per_row, length, WIDTH, PADDED)


class _Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q_BHTW, k_BGTW, v_BGTW, bias_H, scale: float, count: float | None, blocks: BlockSizes):
        q, k, v = (rows_apart(x) for x in (q_BHTW, k_BGTW, v_BGTW))
        bias = q if bias_H is None else bias_H.float().contiguous()
        o = empty_by_token(q)
        constants = sizes(q, k, blocks) | {"VISIBLE": count is None, "DIVIDED": bias_H is not None}
        numbers = (*strides(q, k, v), scale, count or 1.0, q.shape[2])
        _forward[grid(q, blocks)](q, k, v, bias, o, *numbers, **constants)
        ctx.save_for_backward(q, k, v, bias)
        ctx.constants, ctx.numbers, ctx.blocks = constants, numbers, blocks
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do_BHTW: torch.Tensor):
        q, k, v, bias = ctx.saved_tensors
        do = by_token(do_BHTW)
        dq, dk, dv = empty_by_token(q), empty_by_token(k), empty_by_token(v)
        blocks, divided = grid(q, ctx.blocks), ctx.constants["DIVIDED"]
        db = q.new_empty(q.shape[0], q.shape[1], blocks[1], dtype=torch.float32) if divided else q
        _queries[blocks](q, k, v, bias, do, dq, db, *ctx.numbers, **ctx.constants)
        _keys[grid(k, ctx.blocks)](q, k, v, bias, do, dk, dv, *ctx.numbers, **ctx.constants)
        return dq, dk, dv, db.sum(dim=(0, 2)) if divided else None, None, None, None
