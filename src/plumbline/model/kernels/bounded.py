"""Computes softmax attention over clipped scores, or over only those scores that are not negative, in Triton.

    z' = clamp(z, -cap, cap)  over all visible keys           (CAPPED)
    z' = z                    over visible keys with z >= 0   (FLOORED; a row without any gives zeros)
    p = softmax(z')    o = p v

Forward is flash attention's: one walk over the keys with a running maximum and sum; kept are o and, for each row,
L = log sum e^z', +inf for a row of zeros. Backward makes p = e^(z' - L) again, tile by tile, with do the gradient of o:

    dv = p^T do    dp = do v^T    dz' = p (dp - delta)    delta = sum_j p_j dp_j = do . o

dz = dz' where |z| <= cap and 0 beyond, since the clamp passes no gradient there. Where z >= 0 decides, it is
a choice of keys and has no gradient of its own.
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
)


def bounded_softmax(
    q_BHTW: torch.Tensor,
    k_BGTW: torch.Tensor,
    v_BGTW: torch.Tensor,
    *,
    scale: float,
    cap: float | None,
    blocks: BlockSizes | None = None,
) -> torch.Tensor:
    """Causal attention (B, H, T, W) over scores clipped at `cap`, or over those of at least zero where it is None."""
    return _Bounded.apply(q_BHTW, k_BGTW, v_BGTW, scale, cap, blocks or blocks_for("bounded", q_BHTW))


@triton.jit
def _bound(z, cap, CAPPED: tl.constexpr):
    """z' in base 2; z is natural, and -inf where a key is not seen."""
    if CAPPED:
        return tl.where(z == float("-inf"), z, tl.minimum(tl.maximum(z, -cap), cap)) * LOG2E
    return tl.where(z >= 0, z * LOG2E, float("-inf"))


@triton.jit
def _forward_step(
    start, top_M, total_M, o_MW, q_MW, rows, k, v, k_t, v_t, scale, cap, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, CAPPED: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    z_MN = _bound(z_MN, cap, CAPPED)
    higher_M = tl.maximum(top_M, tl.max(z_MN, 1))
    # A row may have no key yet: its terms are e^-inf whatever finite number is taken off.
    finite_M = tl.where(higher_M == float("-inf"), 0.0, higher_M)
    factor_M = tl.exp2(top_M - finite_M)
    terms_MN = tl.exp2(z_MN - finite_M[:, None])
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    o_MW = o_MW * factor_M[:, None] + product(terms_MN, v_NW, PRECISION)
    return higher_M, total_M * factor_M + tl.sum(terms_MN, 1), o_MW


@triton.jit
def _forward(
    q, k, v, o, log_sum, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, cap, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, CAPPED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    scale, cap = single(scale), single(cap)
    first, batch, head = queries_held(HEADS, HELD)
    group = head // (HEADS // GROUPS)
    rows = first + tl.arange(0, HELD)
    q_MW = load_tile(origin(q, batch, head, q_b, q_h), rows, q_t, length, WIDTH, PADDED)
    k, v = origin(k, batch, group, k_b, k_h), origin(v, batch, group, v_b, v_h)
    top_M = tl.full((HELD,), float("-inf"), tl.float32)
    total_M = tl.zeros((HELD,), tl.float32)
    o_MW = tl.zeros((HELD, PADDED), tl.float32)
    for start in range(0, first, WALKED):
        top_M, total_M, o_MW = _forward_step(
            start, top_M, total_M, o_MW, q_MW, rows, k, v, k_t, v_t, scale, cap, length,
            WIDTH, PADDED, WALKED, CAPPED, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        top_M, total_M, o_MW = _forward_step(
            start, top_M, total_M, o_MW, q_MW, rows, k, v, k_t, v_t, scale, cap, length,
            WIDTH, PADDED, WALKED, CAPPED, True, PRECISION,
        )  # fmt: skip
    some_M = total_M > 0
    total_M = tl.where(some_M, total_M, 1.0)
    per_row = HEADS * WIDTH
    o = origin(o, batch, head, length * per_row, WIDTH)
    store_tile(o, o_MW / total_M[:, None], rows, per_row, length, WIDTH, PADDED)
    log_M = tl.where(some_M, top_M + tl.log2(total_M), float("inf"))
    tl.store(log_sum + numbers_of(rows, length), log_M, mask=rows < length)


@triton.jit
def _gradient(z, log_sum, delta, dp, cap, CAPPED: tl.constexpr):
    """p and dz of a tile; `log_sum` and `delta` lie along its queries."""
    p = tl.exp2(_bound(z, cap, CAPPED) - log_sum)
    dz = p * (dp - delta)
    if CAPPED:
        dz = tl.where((z >= -cap) & (z <= cap), dz, 0.0)
    return p, dz


@triton.jit
def _queries_step(
    start, dq_MW, q_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale, cap, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, CAPPED: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    keys = start + tl.arange(0, WALKED)
    k_NW = load_tile(k, keys, k_t, length, WIDTH, PADDED)
    v_NW = load_tile(v, keys, v_t, length, WIDTH, PADDED)
    z_MN = scores(q_MW, k_NW, scale, keys[None, :] <= rows[:, None], EDGE, PRECISION)
    dp_MN = product(do_MW, tl.trans(v_NW), PRECISION)
    _, dz_MN = _gradient(z_MN, log_M[:, None], delta_M[:, None], dp_MN, cap, CAPPED)
    return dq_MW + product(dz_MN, k_NW, PRECISION)


@triton.jit
def _queries(
    q, k, v, o, do, log_sum, delta, dq, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, cap, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, CAPPED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dq, and delta for the other kernel."""
    scale, cap = single(scale), single(cap)
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
            start, dq_MW, q_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale, cap, length,
            WIDTH, PADDED, WALKED, CAPPED, False, PRECISION,
        )  # fmt: skip
    for start in range(first, tl.minimum(first + HELD, length), WALKED):
        dq_MW = _queries_step(
            start, dq_MW, q_MW, do_MW, log_M, delta_M, rows, k, v, k_t, v_t, scale, cap, length,
            WIDTH, PADDED, WALKED, CAPPED, True, PRECISION,
        )  # fmt: skip
    dq = origin(dq, batch, head, length * per_row, WIDTH)
    store_tile(dq, dq_MW * scale, rows, per_row, length, WIDTH, PADDED)


@triton.jit
def _keys_step(
    start, dk_NW, dv_NW, k_NW, v_NW, keys, q, do, log_sum, delta, q_t, do_t, scale, cap, length,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, WALKED: tl.constexpr, CAPPED: tl.constexpr, EDGE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    # Rows beyond the length have q = do = 0 and so give nothing.
    rows = start + tl.arange(0, WALKED)
    q_MW = load_tile(q, rows, q_t, length, WIDTH, PADDED)
    do_MW = load_tile(do, rows, do_t, length, WIDTH, PADDED)
    log_M = tl.load(log_sum + rows, mask=rows < length, other=0.0)
    delta_M = tl.load(delta + rows, mask=rows < length, other=0.0)
    z_NM = scores(k_NW, q_MW, scale, keys[:, None] <= rows[None, :], EDGE, PRECISION)
    dp_NM = product(v_NW, tl.trans(do_MW), PRECISION)
    p_NM, dz_NM = _gradient(z_NM, log_M[None, :], delta_M[None, :], dp_NM, cap, CAPPED)
    return dk_NW + product(dz_NM, q_MW, PRECISION), dv_NW + product(p_NM, do_MW, PRECISION)


@triton.jit
def _keys(
    q, k, v, do, log_sum, delta, dk, dv, q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, scale, cap, length,
    HEADS: tl.constexpr, GROUPS: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, HELD: tl.constexpr,
    WALKED: tl.constexpr, CAPPED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dk and dv."""
    scale, cap = single(scale), single(cap)
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
                start, dk_NW, dv_NW, k_NW, v_NW, keys, q_head, do_head, log_head, delta_head, q_t, per_row, scale,
                cap, length, WIDTH, PADDED, WALKED, CAPPED, True, PRECISION,
            )  # fmt: skip
        for start in range(first + HELD, length, WALKED):
            dk_NW, dv_NW = _keys_step(
                start, dk_NW, dv_NW, k_NW, v_NW, keys, q_head, do_head, log_head, delta_head, q_t, per_row, scale,
                cap, length, WIDTH, PADDED, WALKED, CAPPED, False, PRECISION,
            )  # fmt: skip
    per_row = GROUPS * WIDTH
    dk, dv = origin(dk, batch, group, length * per_row, WIDTH), origin(dv, batch, group, length * per_row, WIDTH)
    store_tile(dk, dk_NW * scale, keys, per_row, length, WIDTH, PADDED)
    store_tile(dv, dv_NW, keys, per_row, length, WIDTH, PADDED)


class _Bounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q_BHTW, k_BGTW, v_BGTW, scale: float, cap: float | None, blocks: BlockSizes) -> torch.Tensor:
        q, k, v = (rows_apart(x) for x in (q_BHTW, k_BGTW, v_BGTW))
        o, log_sum = empty_by_token(q), q.new_empty(q.shape[:3], dtype=torch.float32)
        constants = sizes(q, k, blocks) | {"CAPPED": cap is not None}
        numbers = (*strides(q, k, v), scale, cap or 0.0, q.shape[2])
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
