"""ONNX graphs written down node by node, with weights and inputs of their own."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Model:
    """A graph that grows by calls; each gives the name of what it made."""

    def __init__(self, opset=18, seed=3):
        self.rng = np.random.default_rng(seed)
        self.opset, self.nodes, self.weights, self.infos = opset, [], [], []
        self.feeds = {}

    def input(self, name, *shape, low=-2.0, high=2.0, dynamic=()):
        self.feeds[name] = self.rng.uniform(low, high, shape).astype(np.float32)
        declared = [f"{name}{d}" if d in dynamic else n for d, n in enumerate(shape)]
        self.infos.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, declared))
        return name

    def weight(self, *shape):
        scale = 1 / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1)
        return self.constant(self.rng.standard_normal(shape) * scale)

    def constant(self, value, dtype=np.float32):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def group_norm(self, x, channels, groups):
        """As PyTorch's exporter writes it."""
        y = self.node("Reshape", x, self.constant([0, groups, -1], np.int64))
        ones, zeros = self.constant(np.ones(groups)), self.constant(np.zeros(groups))
        y = self.node("InstanceNormalization", y, ones, zeros, epsilon=1e-5)
        y = self.node("Reshape", y, self.node("Shape", x))
        y = self.node("Mul", y, self.weight(channels, 1, 1))
        return self.node("Add", y, self.weight(channels, 1, 1))

    def silu(self, x):
        return self.node("Mul", x, self.node("Sigmoid", x))

    def conv(self, x, out, channels, kernel=3, **attributes):
        weight = self.weight(out, channels // attributes.get("group", 1), kernel, kernel)
        return self.node("Conv", x, weight, pads=[kernel // 2] * 4, **attributes)

    def proto(self, output, element=TensorProto.FLOAT):
        made = helper.make_tensor_value_info(output, element, None)
        graph = helper.make_graph(self.nodes, "cliff", self.infos, [made], self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, ir_version=10, opset_imports=opsets)
