"""Computes selective attention in Triton: each group's first query head subtracts its scores from those of the others.

    z = scores of an attending head    y = scores of its group's first head    S = relu(y) where 0 < key < query, else 0

    before the softmax:  p = softmax(z - S)    w = p          o = w v
    after it (AFTER):    p = softmax(z)        w = p e^-S     o = w v

The first head only masks, or attends as well. S needs no sum over queries, so a tile makes it for itself: two score
products instead of one. Kept are the inputs, o, and for each row L, the logarithm of the softmax's sum.

Backward, with do the gradient of o and dw = do v^T; the row's number is the same in both, delta = sum_j w_j dw_j =
do . o, since sum_j p_j dp_j with dp = e^-S dw is just that:

    dv = w^T do    before: dz = p (dw - delta), dS = -dz    after: dz = w dw - p delta, dS = -w dw
    dy = sum of dS over the group's attending heads, where S > 0

dz goes to the attending head's query, dy to the first head's, and both to the keys. Keys are held with all heads of
their group, so S and the products of dy are made once a group there; for the queries' gradient a program takes the
heads of a group one after the other and sums dy's over them.
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


def selective(
    q_BHTW: torch.Tensor,
    k_BGTW: torch.Tensor,
    v_BGTW: torch.Tensor,
    *,
    scale: float,
    attends: bool,
    after: bool,
    blocks: BlockSizes | None = None,
) -> torch.Tensor:
    """Causal selective attention (B, output heads, T, W).

    Args:
        scale: multiplies the scores.
        attends: the masking heads attend too, and are among the output heads.
        after: subtract after the softmax, not before it.
    """
    return _Selective.apply(q_BHTW, k_BGTW, v_BGTW, scale, attends, after, blocks or blocks_for("selective", q_BHTW))


@triton.jit
def _selection(left_XW, right_YW, scale, queries, keys, PRECISION: tl.constexpr):
    """S (X, Y); `queries` and `keys` are positions that broadcast to it."""
    y_XY = product(left_XW, tl.trans(right_YW), PRECISION) * scale
    return tl.where((keys > 0) & (keys < queries), tl.maximum(y_XY, 0.0), 0.0)


@triton.jit
def _forward_step(
    start, top_M, total_M, o_MW, q_MW, mask_MW, rows, k, v, k_t, v_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, AFTER: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    s_MN = _selection(mask_MW, k_NW, scale, rows[:, None], keys[None, :], PRECISION)
    if not AFTER:
        z_MN -= s_MN
    top_M, total_M, factor_M, w_MN = update_softmax(top_M, total_M, z_MN)
    if AFTER:
        w_MN *= tl.exp2(-s_MN)
    return top_M, total_M, o_MW * factor_M[:, None] + product(w_MN, v_NW, PRECISION)


@triton.jit
def _forward(
    q, k, v, o, log_sum, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, OUT: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
    HELD: tl.constexpr, WALKED: tl.constexpr, AFTER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """`OUT`: the heads that attend."""
    scale = single(scale)
    first, batch, out = queries_held(OUT, HELD)
    group = out // (OUT // GROUPS)
    # A group's attending heads are its last ones.
    masking = group * (HEADS // GROUPS)
    head = masking + (HEADS - OUT) // GROUPS + out % (OUT // GROUPS)
    rows = first + tl.arange(0, HELD)
    q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    mask_MW = load_tile(origin(q, batch, masking, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    scale *= LOG2E
    top_M = tl.full((HELD,), float("-inf"), tl.float32)
    total_M = tl.zeros((HELD,), tl.float32)
    o_MW = tl.zeros((HELD, PADDED), tl.float32)
    for start in range(0, first, WALKED):
        top_M, total_M, o_MW = _forward_step(
            start, top_M, total_M, o_MW, q_MW, mask_MW, rows, k, v, k_t, v_t, scale, length,
            WIDTH, PADDED, WALKED, AFTER, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        top_M, total_M, o_MW = _forward_step(
            start, top_M, total_M, o_MW, q_MW, mask_MW, rows, k, v, k_t, v_t, scale, length,
            WIDTH, PADDED, WALKED, AFTER, True, PRECISION,
        )  # fmt: skip
    per_row = OUT * WIDTH
    o = origin(o, batch, out, length * per_row, WIDTH)
    store_tile(o, o_MW / total_M[:, None], rows, per_row, length, WIDTH, PADDED)
    row = numbers_of(rows, length)
    tl.store(log_sum + row, top_M + tl.log2(total_M), mask=rows < length)


@triton.jit
def _gradient(z, s, log_sum, delta, dw, AFTER: tl.constexpr):
    """w, dz and dS of a tile; `log_sum` and `delta` lie along its queries."""
    if AFTER:
        p = tl.exp2(z - log_sum)
        w = p * tl.exp2(-s)
        return w, w * dw - p * delta, -w * dw
    p = tl.exp2(z - s - log_sum)
    dz = p * (dw - delta)
    return p, dz, -dz


@triton.jit
def _queries_step(
    start, dq_MW, dmask_MW, q_MW, mask_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, AFTER: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    s_MN = _selection(mask_MW, k_NW, scale, rows[:, None], keys[None, :], PRECISION)
    dw_MN = product(do_MW, tl.trans(v_NW), PRECISION)
    _, dz_MN, ds_MN = _gradient(z_MN, s_MN, log_M[:, None], delta_M[:, None], dw_MN, AFTER)
    dy_MN = tl.where(s_MN > 0, ds_MN, 0.0)
    return dq_MW + product(dz_MN, k_NW, PRECISION), dmask_MW + product(dy_MN, k_NW, PRECISION)


@triton.jit
def _queries(
    q, k, v, o, do, log_sum, delta, dq, dmask, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, OUT: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
    HELD: tl.constexpr, WALKED: tl.constexpr, AFTER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dq of the heads that attend, what their group's first head gets as the masking one, and delta."""
    scale = single(scale)
    first, batch, group = queries_held(GROUPS, HELD)
    masking = group * (HEADS // GROUPS)
    rows = first + tl.arange(0, HELD)
    mask_MW = load_tile(origin(q, batch, masking, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    dmask_MW = tl.zeros((HELD, PADDED), tl.float32)
    per_row = HEADS * WIDTH
    for out in range(group * (OUT // GROUPS), (group + 1) * (OUT // GROUPS)):
        head = masking + (HEADS - OUT) // GROUPS + out % (OUT // GROUPS)
        q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
        o_head = origin(o, batch, out, length * OUT * WIDTH, WIDTH)
        do_head = origin(do, batch, out, length * OUT * WIDTH, WIDTH)
        o_MW = load_tile(o_head, rows, OUT * WIDTH, length, WIDTH, PADDED)
        do_MW = load_tile(do_head, rows, OUT * WIDTH, length, WIDTH, PADDED)
        log_M = tl.load(origin(log_sum, batch, out, length * OUT, length) + rows, mask=rows < length, other=0.0)
        delta_M = tl.sum(do_MW.to(tl.float32) * o_MW.to(tl.float32), 1)
        tl.store(origin(delta, batch, out, length * OUT, length) + rows, delta_M, mask=rows < length)
        dq_MW = tl.zeros((HELD, PADDED), tl.float32)
        for start in range(0, first, WALKED):
            dq_MW, dmask_MW = _queries_step(
                start, dq_MW, dmask_MW, q_MW, mask_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale * LOG2E,
                length, WIDTH, PADDED, WALKED, AFTER, False, PRECISION,
            )  # fmt: skip
        for start in range(first, tl.minimum(first + HELD, length), WALKED):
            dq_MW, dmask_MW = _queries_step(
                start, dq_MW, dmask_MW, q_MW, mask_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale * LOG2E,
                length, WIDTH, PADDED, WALKED, AFTER, True, PRECISION,
            )  # fmt: skip
        dq_head = origin(dq, batch, head, length * per_row, WIDTH)
        store_tile(dq_head, dq_MW * scale, rows, per_row, length, WIDTH, PADDED)
    per_row = GROUPS * WIDTH
    dmask = origin(dmask, batch, group, length * per_row, WIDTH)
    store_tile(dmask, dmask_MW * scale, rows, per_row, length, WIDTH, PADDED)


@triton.jit
def _keys_step(
    start, dk_NW, dv_NW, k_NW, v_NW, keys, q, do, log_sum, delta, batch, group, q_b, q_h, q_t, scale, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, OUT: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
    HELD: tl.constexpr, WALKED: tl.constexpr, AFTER: tl.constexpr, EDGE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    # Rows beyond the length have q = do = 0 and so give nothing.
    rows = start + tl.arange(0, WALKED)
    masking = group * (HEADS // GROUPS)
    mask_MW = load_tile(origin(q, batch, masking, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    s_NM = _selection(k_NW, mask_MW, scale, rows[None, :], keys[:, None], PRECISION)
    ds_NM = tl.zeros((HELD, WALKED), tl.float32)
    for out in range(group * (OUT // GROUPS), (group + 1) * (OUT // GROUPS)):
        head = masking + (HEADS - OUT) // GROUPS + out % (OUT // GROUPS)
        q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
        do_head = origin(do, batch, out, length * OUT * WIDTH, WIDTH)
        do_MW = load_tile(do_head, rows, OUT * WIDTH, length, WIDTH, PADDED)
        log_M = tl.load(origin(log_sum, batch, out, length * OUT, length) + rows, mask=rows < length, other=0.0)
        delta_M = tl.load(origin(delta, batch, out, length * OUT, length) + rows, mask=rows < length, other=0.0)
        z_NM = scores(k_NW, q_MW, scale, keys[:, None] <= rows[None, :], EDGE, PRECISION)
        dw_NM = product(v_NW, tl.trans(do_MW), PRECISION)
        w_NM, dz_NM, more_NM = _gradient(z_NM, s_NM, log_M[None, :], delta_M[None, :], dw_NM, AFTER)
        dv_NW += product(w_NM, do_MW, PRECISION)
        dk_NW += product(dz_NM, q_MW, PRECISION)
        ds_NM += more_NM
    dk_NW += product(tl.where(s_NM > 0, ds_NM, 0.0), mask_MW, PRECISION)
    return dk_NW, dv_NW


@triton.jit
def _keys(
    q, k, v, do, log_sum, delta, dk, dv, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, OUT: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
    HELD: tl.constexpr, WALKED: tl.constexpr, AFTER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dk and dv."""
    scale = single(scale)
    first, batch, group = keys_held(GROUPS, HELD)
    keys = first + tl.arange(0, HELD)
    k_NW = load_tile(origin(k, batch, group, k_b, k_h), keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(origin(v, batch, group, v_b, v_h), keys, v_t, length, WIDTH, PADDED)
    dk_NW = tl.zeros((HELD, PADDED), tl.float32)
    dv_NW = tl.zeros((HELD, PADDED), tl.float32)
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        dk_NW, dv_NW = _keys_step(
            start, dk_NW, dv_NW, k_NW, v_NW, keys, q, do, log_sum, delta, batch, group, q_b, q_h, q_t, scale * LOG2E,
            length, HEADS, GROUPS, OUT, WIDTH, PADDED, HELD, WALKED, AFTER, True, PRECISION,
        )  # fmt: skip
    for start in range(first + HELD, length, WALKED):
        dk_NW, dv_NW = _keys_step(
            start, dk_NW, dv_NW, k_NW, v_NW, keys, q, do, log_sum, delta, batch, group, q_b, q_h, q_t, scale * LOG2E,
            length, HEADS, GROUPS, OUT, WIDTH, PADDED, HELD, WALKED, AFTER, False, PRECISION,
        )  # fmt: skip
    per_row = GROUPS * WIDTH
    dk, dv = origin(dk, batch, group, length * per_row, WIDTH), origin(dv, batch, group, length * per_row, WIDTH)
    store_tile(dk, dk_NW * scale, keys, per_row, length, WIDTH, PADDED)
    store_tile(dv, dv_NW, keys, per_row, length, WIDTH, PADDED)


class _Selective(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, q_BHTW, k_BGTW, v_BGTW, scale: float, attends: bool, after: bool, blocks: BlockSizes
    ) -> torch.Tensor:
        q, k, v = (rows_apart(x) for x in (q_BHTW, k_BGTW, v_BGTW))
        batch, heads, length, _ = q.shape
        out = heads if attends else heads - k.shape[1]
        o, log_sum = empty_by_token(q, out), q.new_empty(batch, out, length, dtype=torch.float32)
        constants = sizes(q, k, blocks) | {"OUT": out, "AFTER": after}
        numbers = (*strides(q, k, v), scale, length)
        _forward[grid(q, blocks, out)](q, k, v, o, log_sum, *numbers, **constants)
        ctx.save_for_backward(q, k, v, o, log_sum)
        ctx.constants, ctx.numbers, ctx.blocks, ctx.attends = constants, numbers, blocks, attends
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do_BHTW: torch.Tensor):
        q, k, v, o, log_sum = ctx.saved_tensors
        do, delta = by_token(do_BHTW), torch.empty_like(log_sum)
        dq, dk, dv = empty_by_token(q), empty_by_token(k), empty_by_token(v)
        # What the masking heads get as such goes straight to its place, or is added to what they get for attending.
        first_BGTW = dq[:, :: q.shape[1] // k.shape[1]]
        dmask = empty_by_token(k)
        blocks = grid(k, ctx.blocks)
        _queries[blocks](q, k, v, o, do, log_sum, delta, dq, dmask, *ctx.numbers, **ctx.constants)
        _keys[blocks](q, k, v, do, log_sum, delta, dk, dv, *ctx.numbers, **ctx.constants)
        if ctx.attends:
            first_BGTW += dmask
        else:
            first_BGTW.copy_(dmask)
        return dq, dk, dv, None, None, None, None
