"""Models of TensorFlow as functions: signatures of SavedModels, and frozen graphs."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf


def frozen_function(path: Path):
    """A graph from its placeholders to the nodes that nobody reads or waits for."""
    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString(path.read_bytes())
    read = {name.split(":")[0].lstrip("^") for node in graph.node for name in node.input}
    silent = ("NoOp", "Const", "Assert", "Placeholder")
    inputs = [n.name for n in graph.node if n.op == "Placeholder" and n.name in read]
    outputs = [n.name for n in graph.node if n.name not in read and n.op not in silent]
    return imported(graph, [f"{n}:0" for n in inputs], [f"{n}:0" for n in outputs])


def in_float64(graph: tf.compat.v1.GraphDef) -> tf.compat.v1.GraphDef:
    """The frozen graph, and the functions that it calls, with float64 for each float32."""
    single, double = tf.float32.as_datatype_enum, tf.float64.as_datatype_enum
    wide = tf.compat.v1.GraphDef()
    wide.CopyFrom(graph)
    functions = wide.library.function
    for function in functions:
        for argument in (*function.signature.input_arg, *function.signature.output_arg):
            argument.type = double if argument.type == single else argument.type
    for node in (*wide.node, *(node for function in functions for node in function.node_def)):
        for attribute in node.attr.values():
            kind = attribute.WhichOneof("value")
            if kind == "type" and attribute.type == single:
                attribute.type = double
            elif kind == "list":
                attribute.list.type[:] = [double if t == single else t for t in attribute.list.type]
            elif kind == "tensor" and attribute.tensor.dtype == single:
                value = tf.make_ndarray(attribute.tensor).astype(np.float64)
                attribute.tensor.CopyFrom(tf.make_tensor_proto(value))
    return wide


def spell_out_norms(graph: tf.compat.v1.GraphDef) -> tf.compat.v1.GraphDef:
    """The graph with batch norms of inference as arithmetic: the operator has no float64."""
    result = tf.compat.v1.GraphDef()
    result.CopyFrom(graph)
    del result.node[:]
    for node in graph.node:
        is_norm = node.op == "FusedBatchNormV3" and not node.attr["is_training"].b
        if not is_norm or node.attr["data_format"].s not in (b"", b"NHWC"):
            result.node.add().CopyFrom(node)
            continue
        x, scale, offset, mean, variance = node.input[:5]
        name, kind = node.name, node.attr["T"]
        epsilon = result.node.add(name=f"{name}/epsilon", op="Const")
        epsilon.attr["dtype"].CopyFrom(kind)
        epsilon.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(node.attr["epsilon"].f)))
        for part, op, inputs in (
            ("sum", "AddV2", (variance, f"{name}/epsilon")), ("root", "Rsqrt", (f"{name}/sum",)),
            ("factor", "Mul", (f"{name}/root", scale)), ("centre", "Sub", (x, mean)),
            ("product", "Mul", (f"{name}/centre", f"{name}/factor")), ("", "AddV2", (f"{name}/product", offset)),
        ):  # fmt: skip
            made = result.node.add(name=f"{name}/{part}" if part else name, op=op, input=inputs)
            made.attr["T"].CopyFrom(kind)
    return result


def imported(graph: tf.compat.v1.GraphDef, inputs: list[str], outputs: list[str]):
    """A graph as a function between names of tensors, "x:0"."""
    function = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(graph, name=""), [])
    tensors = lambda names: [function.graph.get_tensor_by_name(n) for n in names]  # noqa: E731
    return function.prune(tensors(inputs), tensors(outputs))


class TensorFlowModel:
    """A function with named inputs (specs by name) and outputs."""

    def __init__(self, path: Path, signature: str = "", names: set[str] | None = None):
        """The signature of this name; else the first, serving_default before others, whose
        inputs have these names."""
        if path.is_dir() or path.name == "saved_model.pb":
            folder = path if path.is_dir() else path.parent
            self.model = tf.saved_model.load(str(folder))  # keeps its variables alive
            table = dict(self.model.signatures)
            keys = sorted(table, key=lambda key: key != "serving_default")
            takes = lambda key: set(table[key].structured_input_signature[1])  # noqa: E731
            fitting = [key for key in keys if names is None or takes(key) == names]
            wanted = signature or (fitting or keys)[0]
            self.function = table[wanted]
            self.inputs = self.function.structured_input_signature[1]
        else:
            self.function = frozen_function(path)
            self.inputs = {x.name.split(":")[0]: x for x in self.function.inputs}

    def prepare(self, inputs: dict[str, np.ndarray]):
        """A call without arguments that gives tensors by name."""
        values = {k: tf.constant(v) for k, v in inputs.items()}
        if isinstance(self.function.structured_outputs, dict):
            return lambda: self.function(**values)
        names = [x.name.split(":")[0] for x in self.function.outputs]
        return lambda: dict(zip(names, self.function(*(values[name] for name in self.inputs))))

    def run_float64(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What prepare()'s call gives, computed in float64."""
        function = self.function
        if isinstance(function.structured_outputs, dict):
            from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

            function = convert_variables_to_constants_v2(function)
            # Outputs of a signature are in the order of their names.
            names = sorted(self.function.structured_outputs)
        else:
            names = [x.name.split(":")[0] for x in function.outputs]
        keys = [x.name for x in function.inputs]
        wide = imported(in_float64(spell_out_norms(function.graph.as_graph_def())), keys, [x.name for x in function.outputs])
        by_key = {f"{k}:0": v for k, v in inputs.items()}
        feeds = [by_key[key] for key in keys]
        feeds = [tf.constant(v.astype(np.float64) if v.dtype == np.float32 else v) for v in feeds]
        return {name: value.numpy() for name, value in zip(names, wide(*feeds))}
