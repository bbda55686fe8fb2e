"""Random graphs of operators and of the blocks that real networks are made of.

They test what one-node models cannot: fusion, layouts, values with several uses,
memory reuse, recognition of decomposed patterns, sizes that are not known before the
run. Only well-conditioned operators are used, so that a rounding error stays one.
"""

from __future__ import annotations

import numpy as np
from graph_cases import contraction, elementwise, image, index, open_sizes, rows, view
from graph_cases.builder import Graph, GraphBuilder

STEPS = (
    contraction.rows_of_batch, view.turn_batch, index.choose_best,
    index.gather_elements, rows.cumulative, view.mirror_pad, view.tile, view.reverse,
    index.scatter, image.conv_other, rows.norm_of_channels, image.pool_other,
    image.shuffle, contraction.einsum, view.several, view.shaped_mask,
    elementwise.unary, elementwise.unary, elementwise.binary, elementwise.binary,
    elementwise.clip, elementwise.residual, elementwise.scale_shift,
    elementwise.where, rows.reduce, rows.reduce, rows.softmax, rows.layer_norm,
    elementwise.gelu, contraction.linear, contraction.linear,
    contraction.batched_matmul, contraction.attention, image.conv, image.conv,
    image.conv, image.pool, image.squeeze_excite, view.transpose, view.transpose,
    view.flatten, view.unfold, view.slice_, view.split_gate, view.concat, view.pad,
    view.expand, index.gather, image.resize,
)  # fmt: skip


def build(seed: int, number: int) -> Graph:
    """The graph that (seed, number) names; every third has open sizes besides the
    batch."""
    rng = np.random.default_rng([seed, number])
    if number % 3 == 2:
        return open_sizes.build(rng)
    builder = GraphBuilder(rng)
    builder.grow(int(rng.integers(1, 14)), STEPS)
    return builder
