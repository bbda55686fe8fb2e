"""TensorFlow's files (tf_cases.py makes them) against TensorFlow's results."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from pathlib import Path

import harness
import numpy as np
import pytest

FOLDERS = sorted(p.parent for p in (Path(__file__).resolve().parent / "tf").glob("*/out.npz"))
assert FOLDERS


def arrays(folder: Path, kind: str) -> dict[str, np.ndarray]:
    with np.load(folder / f"{kind}.npz") as file:
        return dict(file)


def check(want: np.ndarray, got: np.ndarray) -> str:
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return "" if (got == want).all() else f"{got} is not {want}"
    a, b = want.astype(np.float64), got.astype(np.float64)
    scale = max(1.0, np.abs(a[np.isfinite(a)]).max(initial=0))
    limit = 2e-3 if want.dtype == np.float16 else 1e-5
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= limit * scale)
    return "" if same.all() else f"differs by {np.abs(a - b).max()}: {got} is not {want}"


def model_of(folder: Path) -> tuple[Path, list[str]]:
    """The model's path, and options."""
    options = folder / "options.txt"
    graphs = [folder / name for name in ("graph.pb", "graph.pbtxt") if (folder / name).exists()]
    return graphs[0] if graphs else folder, options.read_text().split() if options.exists() else []


@pytest.mark.parametrize("folder", FOLDERS, ids=[f.name for f in FOLDERS])
def test_model(folder: Path, tmp_path: Path) -> None:
    engine, (model, extra) = tmp_path / "m.engine", model_of(folder)
    harness.compile_model(model, engine, extra=extra)
    for inputs in sorted(folder.glob("in*.npz")):
        suffix = inputs.stem.removeprefix("in")
        got = harness.run_all_outputs(engine, arrays(folder, "in" + suffix), tmp_path)
        wanted = arrays(folder, "out" + suffix)
        assert sorted(got) == sorted(wanted)
        problems = {name: check(want, got[name]) for name, want in wanted.items()}
        assert not any(problems.values()), (suffix, {k: v for k, v in problems.items() if v})


OTHERS = {
    "model.keras": (b"PK\x03\x04 and more", "is a .keras archive, without a graph", 'load_model("model.keras").export("folder")'),
    "model.h5": (b"\x89HDF\r\n\x1a\n", "is an HDF5 file of Keras, without a graph", 'load_model("model.h5")'),
    "m.weights.h5": (b"\x89HDF\r\n\x1a\n", "is a file of weights: variables without a graph", "model.load_weights"),
    "model.tflite": (b"\x1c\0\0\0TFL3 and more", "is a model of TFLite", "that it was converted from"),
    "ckpt-1.index": (b"some bytes", "is a checkpoint: variables without a graph", "tf.train.Checkpoint(model=model)"),
    "ckpt-1.data-00000-of-00001": (b"some bytes", "is a checkpoint", "restore"),
    "folder/checkpoint": (b"model_checkpoint_path", "is a folder of checkpoints", "restore"),
    "empty/readme": (b"", "is a folder without a saved_model.pb", "tf.saved_model.save"),
    "broken.pbtxt": (b"node {\n  name: 7\n}", "line 2: field 'name' has a value of another kind", "again"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_files_without_a_graph(name: str, tmp_path: Path) -> None:
    content, what, remedy = OTHERS[name]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    model = path.parent if "/" in name else path
    result = harness.invoke("compile", model, "-o", tmp_path / "m.engine")
    assert result.code == 1 and result.kind != "crashed", result.stderr
    assert what in result.stderr and remedy in result.stderr, result.stderr
    assert not (tmp_path / "m.engine").exists()


def test_options_of_other_models(tmp_path: Path) -> None:
    folder = FOLDERS[0].parent
    for model, options, what in (
        (folder / "signatures", ["--signature", "x"], "has no signature 'x'; it has backward, forward"),
        (folder / "signatures", ["--signature", "forward", "--inputs", "a"], "use --signature instead"),
        (folder / "lowered/graph.pb", ["--signature", "x"], "is a graph, which has no signatures"),
        (folder / "lowered/graph.pb", ["--outputs", "nobody"], "output 'nobody' is not a node of the graph"),
        (folder / "lowered/graph.pb", ["--outputs", "Identity:7"], "output 'Identity:7' is not among the results of its node"),
        (folder / "nothing/saved_model.pb", [], "No such file or directory"),
        (folder / "nothing", ["--signature", "x"], "No such file or directory"),
        (folder.parents[2] / "models/digits/digits.onnx", ["--outputs", "logits"], "it is no model of TensorFlow"),
    ):
        result = harness.invoke("compile", model, "-o", tmp_path / "m.engine", *options)
        assert result.code == 1 and what in result.stderr, result.stderr


def with_weights(folder: Path, weights: dict[str, np.ndarray], tmp_path: Path) -> dict[str, np.ndarray]:
    file = harness.save_safetensors(tmp_path / "w.safetensors", weights)
    harness.compile_model(folder, tmp_path / "m.engine", extra=["--weights", file])
    return harness.run_all_outputs(tmp_path / "m.engine", arrays(folder, "in"), tmp_path)


def test_weights_of_another_file(tmp_path: Path) -> None:
    """Of variables by their names, or by the way to them; of constants by their nodes."""
    folder = FOLDERS[0].parent
    table = np.arange(15, dtype=np.float32).reshape(5, 3)
    got = with_weights(folder / "positions", {"Variable": table}, tmp_path)
    x = arrays(folder / "positions", "in")["x"]
    [first] = [name for name, value in got.items() if value.shape == x.shape]
    assert (got[first] == table[: len(x)] + x).all()
    none = np.zeros((2, 3, 2, 2, 1), np.float32)
    got, want = with_weights(folder / "weights", {"known/2x3x2x2x1": none}, tmp_path), arrays(folder / "weights", "out")
    assert not got["same"].any() and not check(want["valid"], got["valid"])
    for name in ("tf1_reference", "tf1_resource"):
        got = with_weights(folder / name, {"w": np.zeros((3, 3, 2, 4), np.float32)}, tmp_path)["map"]
        assert (got == got[:1, :1, :1]).all() and got.any()
    file = tmp_path / "w.safetensors"

    def compiled(model: Path, weights: dict[str, np.ndarray]):
        harness.save_safetensors(file, weights)
        return harness.invoke("compile", model, "-o", tmp_path / "m.engine", "--weights", file)

    result = compiled(folder / "weights", {"Variable": none, "known/2x3x2x2x1": none[0]})
    assert result.code == 1 and "2 of its tensors do not fit the model:" in result.stderr
    assert "'Variable' is no weight of the model" in result.stderr
    assert "'known/2x3x2x2x1' is F32 [3, 2, 2, 1], in the model float32[2, 3, 2, 2, 1]" in result.stderr
    graph = folder / "lowered/graph.pb"
    name = "lstm_1/lstm_cell_1/BiasAdd/ReadVariableOp/resource"
    result = compiled(graph, {name: np.zeros(0, np.float32)})
    shape = re.search(r"is F32 \[0\], in the model float32\[(.*)\]", result.stderr).group(1)
    result = compiled(graph, {name: np.zeros([int(size) for size in shape.split(", ")], np.float32)})
    assert result.kind == "ok" and f"'{name}'" not in result.stderr, result.stderr
    assert "has no tensors for 2 weights, which keep the model's values:" in result.stderr


def test_weights_in_place_of_damaged_ones(tmp_path: Path) -> None:
    """What is replaced is not read."""
    folder = shutil.copytree(FOLDERS[0].parent / "positions", tmp_path / "m")
    table = np.random.RandomState(8).uniform(0.1, 1, (5, 3)).astype(np.float32)
    [shard] = folder.glob("variables/*.data-*")
    whole = shard.read_bytes()
    assert whole.count(table.tobytes()) == 1
    shard.write_bytes(whole.replace(table.tobytes(), table[::-1].tobytes()))
    result = harness.invoke("compile", folder, "-o", tmp_path / "m.engine")
    assert result.code == 1 and "has bytes whose checksum differs" in result.stderr, result.stderr
    got, wanted = with_weights(folder, {"Variable": table}, tmp_path), arrays(folder, "out")
    assert not any(check(want, got[name]) for name, want in wanted.items())


def test_parts_that_lie(tmp_path: Path) -> None:
    """Of variables that are stored in parts a graph says which part each node holds."""
    folder = shutil.copytree(FOLDERS[0].parent / "tf1_parts", tmp_path / "m")
    whole = (folder / "saved_model.pb").read_bytes()
    assert whole.count(b"7 6 0,3:0,6") == 2  # as saved, and restored
    for part in (b"7 6 0,9:0,6", b"8 6 0,3:0,6", b"7 6 0,3 0,6", b"7 6 x,3:0,6", b"7 6 0;3:0,6", b"7 6 1,3:-,-"):
        (folder / "saved_model.pb").write_bytes(whole.replace(b"7 6 0,3:0,6", part))
        result = harness.invoke("compile", folder, "-o", tmp_path / "m.engine")
        what = f"reads part '{part.decode()}' of float32[7, 6], which it does not have"
        assert result.code == 1 and what in result.stderr, result.stderr


def test_what_the_list_of_operators_says(tmp_path: Path) -> None:
    """A SavedModel's own list has the types of results, and attributes that nodes leave out."""
    folder = shutil.copytree(FOLDERS[0].parent / "keras_cnn", tmp_path / "m")
    whole = (folder / "saved_model.pb").read_bytes()
    parts = whole.split(b"\x12\x05AddV2")
    assert len(parts) > 1 and all(b"\n\x01T\x12\x020\x01" in part for part in parts[1:])
    as_integers = [parts[0]] + [part.replace(b"\n\x01T\x12\x020\x01", b"\n\x01T\x12\x020\x03", 1) for part in parts[1:]]
    default = b"\n\x0btranspose_b\x12\x04bool\x1a\x02(\x00"
    assert whole.count(default) == 1
    for changed, what in (
        (b"\x12\x05AddV2".join(as_integers), "but the file says int32"),
        (whole.replace(default, default[:-1] + b"\x01"), "inner dimensions differ"),
    ):
        assert len(changed) == len(whole)
        (folder / "saved_model.pb").write_bytes(changed)
        result = harness.invoke("compile", folder, "-o", tmp_path / "m.engine")
        assert result.code == 1 and what in result.stderr, result.stderr


def test_onnx_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "m.pb").write_bytes((harness.ROOT / "models/digits/digits.onnx").read_bytes())
    harness.compile_model(tmp_path / "m.pb", tmp_path / "m.engine")


@pytest.mark.parametrize("option", ["--inputs", "--outputs"])
def test_lists_of_names_have_no_gaps(option: str, tmp_path: Path) -> None:
    graph = FOLDERS[0].parent / "lowered/graph.pb"
    for names, what in (("A,,B", "a name is empty in 'A,,B'"), ("", "is empty")):
        result = harness.invoke("compile", graph, "-o", tmp_path / "m.engine", option, names)
        assert result.code == 2 and f"{option}: {what}" in result.stderr, result.stderr


def test_steps_share_kernels(tmp_path: Path) -> None:
    """What 24 steps compute of their inputs is computed at once, and they differ in where they read alone."""
    engine = tmp_path / "m.engine"
    harness.compile_model(FOLDERS[0].parent / "masked_steps/graph.pb", engine, extra=["--shape", "x=4x24x3"])
    text = harness.invoke("inspect", engine, "--kernels").stdout
    launches, kernels = map(int, re.search(r"(\d+) kernel launches of (\d+) kernels", text).groups())
    assert launches <= 36 and kernels <= 10, text  # 98 of 53 without


def test_steps_of_an_open_length(tmp_path: Path) -> None:
    """Of the sizes that the shape holds, the one that the loop counts to."""
    harness.compile_model(FOLDERS[0].parent / "open_steps/graph.pb", tmp_path / "m.engine")
    for steps in (1, 2, 40):
        x = np.random.default_rng(steps).standard_normal((2, steps, 3)).astype(np.float32)
        (got,) = harness.run_all_outputs(tmp_path / "m.engine", {"x": x}, tmp_path).values()
        np.testing.assert_allclose(got, x.sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 30])
def test_recurrent_layers_of_an_open_length(length: int, tmp_path: Path) -> None:
    """They do the same as for a length that is known."""
    folder = FOLDERS[0].parent / "keras_lengths"
    harness.compile_model(folder, tmp_path / "open.engine")
    harness.compile_model(folder, tmp_path / "known.engine", extra=["--shape", f"x=?x{length}x6"])
    x = np.random.default_rng(length).standard_normal((2, length, 6)).astype(np.float32)
    x[:, length // 2] = 0  # masked
    results = [harness.run_all_outputs(tmp_path / f"{kind}.engine", {"x": x}, tmp_path) for kind in ("open", "known")]
    for name, want in results[1].items():
        np.testing.assert_allclose(results[0][name], want, rtol=1e-5, atol=1e-6, err_msg=name)


def test_positions_behind_a_table(tmp_path: Path) -> None:
    """A table of 5 positions takes sequences of 5, not 0 for what lies behind."""
    folder = FOLDERS[0].parent / "positions"
    harness.compile_model(folder, tmp_path / "m.engine")
    inputs = dict(np.load(folder / "in.npz"))
    inputs["x"] = np.zeros((6, 3), np.float32)
    arguments = []
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"{name}={tmp_path}/{name}.npy"]
    result = harness.invoke("run", tmp_path / "m.engine", *arguments)
    assert result.code == 1 and "at most 5" in result.stderr, result.stderr


def test_every_row_has_a_case() -> None:
    """Each operator is imported by a model here; but references of TF1, which pass on what they get, and what
    is looked through: inputs and the ends of loops' steps."""
    files = sorted((harness.ROOT / "frontends/tensorflow/ops").glob("*.cpp"))
    rows = {op for file in files for op in re.findall(r'(?:\{|\.op = )"(\w+)",', file.read_text())}
    imported = set()
    for folder in FOLDERS:
        model, options = model_of(folder)
        listed = subprocess.run([harness.binary().with_name("charonia-import"), "--nodes", model, *options], capture_output=True, text=True, check=True)
        imported |= {line.split()[0] for line in listed.stdout.splitlines()}
    missing = rows - imported
    assert len(rows) > 150 and missing <= {"Variable", "IsVariableInitialized", "RefEnter", "RefIdentity", "RefNextIteration", "NextIteration", "Placeholder"}, missing


def test_blocks_with_channels_first(tmp_path: Path) -> None:
    """TensorFlow has them on GPUs alone: what it computes with channels last, turned."""
    x, turn = np.random.RandomState(2).rand(2, 4, 6, 12).astype(np.float32), (0, 3, 1, 2)
    n, h, w, c = x.shape
    deep = x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)
    wide = x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * 2, w * 2, c // 4)
    for op, wanted in (("SpaceToDepth", deep), ("DepthToSpace", wide)):
        (tmp_path / "m.pbtxt").write_text(f"""
            node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
                   attr {{ key: "shape" value {{ shape {{ dim {{ size: -1 }} dim {{ size: 12 }} dim {{ size: -1 }} dim {{ size: -1 }} }} }} }} }}
            node {{ name: "y" op: "{op}" input: "x" attr {{ key: "T" value {{ type: DT_FLOAT }} }} attr {{ key: "block_size" value {{ i: 2 }} }}
                   attr {{ key: "data_format" value {{ s: "NCHW" }} }} }}""")
        harness.compile_model(tmp_path / "m.pbtxt", tmp_path / "m.engine")
        [y] = harness.run_engine(tmp_path / "m.engine", {"x": x.transpose(turn)}, ["y"], tmp_path)
        assert (y == wanted.transpose(turn)).all()


def test_tail_of_the_error_function(tmp_path: Path) -> None:
    """Erfc keeps its digits where it is small."""
    (tmp_path / "m.pbtxt").write_text("""
        node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "shape" value { shape { dim { size: -1 } } } } }
        node { name: "y" op: "Erfc" input: "x" attr { key: "T" value { type: DT_FLOAT } } }""")
    harness.compile_model(tmp_path / "m.pbtxt", tmp_path / "m.engine")
    x = np.linspace(-5, 9, 141, dtype=np.float32)
    got = harness.run_all_outputs(tmp_path / "m.engine", {"x": x}, tmp_path)["y"]
    np.testing.assert_allclose(got, [math.erfc(v) for v in x], rtol=5e-7)


@pytest.mark.parametrize("kind", ["INT8", "UINT8", "INT32", "UINT32", "INT64"])
def test_shifts_by_the_width_and_more(kind: str, tmp_path: Path) -> None:
    """TensorFlow shifts by the element's bits less one at most, and by none where the amount is negative."""
    dtype, type_of = np.dtype(kind.lower()), f"value {{ type: DT_{kind} }}"
    text = ""
    for name in ("x", "by"):
        text += 'node { name: "%s" op: "Placeholder" attr { key: "dtype" %s } attr { key: "shape" value { shape { dim { size: -1 } } } } }' % (name, type_of)
    for op in ("LeftShift", "RightShift"):
        text += 'node { name: "%s" op: "%s" input: "x" input: "by" attr { key: "T" %s } }' % (op, op, type_of)
    (tmp_path / "m.pbtxt").write_text(text)
    harness.compile_model(tmp_path / "m.pbtxt", tmp_path / "m.engine")
    bits = 8 * dtype.itemsize
    amounts = np.array([bits - 1, bits, 100, 40, 5, -2, -128, 0]).astype(dtype)
    x = np.array([3, 3, 3, -5, 1, 7, -8, 200]).astype(dtype)
    got = harness.run_all_outputs(tmp_path / "m.engine", {"x": x, "by": amounts}, tmp_path)
    clipped = np.clip(amounts, 0, bits - 1).astype(dtype)
    np.testing.assert_array_equal(got["LeftShift"], np.left_shift(x, clipped))
    np.testing.assert_array_equal(got["RightShift"], np.right_shift(x, clipped))


def branch(name: str, nodes: str) -> str:
    return 'function { signature { name: "%s" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } } %s ret { key: "y" value: "t:output:0" } }' % (name, nodes)


def numbers(name: str, *values: int, shape: str = "") -> str:
    tensor = f"dtype: DT_INT32 tensor_shape {{ {shape} }} " + " ".join(f"int_val: {v}" for v in values)
    return 'node_def { name: "%s" op: "Const" attr { key: "value" value { tensor { %s } } } }' % (name, tensor)


def test_branches_that_contradict_each_other(tmp_path: Path) -> None:
    """What one branch needs of sizes and the other excludes is an error of the compiler, not of each run."""

    def element(name: str, first: int) -> str:
        cut = 'node_def { name: "r" op: "Slice" input: "x" input: "b:output:0" input: "e:output:0" attr { key: "T" value { type: DT_FLOAT } } }'
        total = 'node_def { name: "t" op: "Sum" input: "r:output:0" input: "z:output:0" attr { key: "T" value { type: DT_FLOAT } } }'
        one = "dim { size: 1 }"
        return branch(name, numbers("b", first, shape=one) + numbers("e", 1, shape=one) + numbers("z", 0, shape=one) + cut + total)

    def whole(name: str, count: int) -> str:
        turned = 'node_def { name: "r" op: "Reshape" input: "x" input: "s:output:0" attr { key: "T" value { type: DT_FLOAT } } }'
        total = 'node_def { name: "t" op: "Sum" input: "r:output:0" input: "z:output:0" attr { key: "T" value { type: DT_FLOAT } } }'
        return branch(name, numbers("s", count, shape="dim { size: 1 }") + numbers("z", 0, shape="dim { size: 1 }") + turned + total)

    for functions, what in (
        (element("a", 3) + element("b", 8), ""),
        (element("a", 8) + whole("b", 5), "does not lie inside"),
        (whole("a", 4) + whole("b", 5), "does not have as many elements"),
    ):
        (tmp_path / "m.pbtxt").write_text("""
            node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
                   attr { key: "shape" value { shape { dim { size: -1 } } } } }
            node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape { } } } }
            node { name: "y" op: "StatelessIf" input: "p" input: "x" attr { key: "then_branch" value { func { name: "a" } } }
                   attr { key: "else_branch" value { func { name: "b" } } } }
            versions { producer: 1000 } library { %s }""" % functions)
        result = harness.invoke("compile", tmp_path / "m.pbtxt", "-o", tmp_path / "m.engine")
        assert (result.code == 1 and what in result.stderr) if what else result.code == 0, result.stderr
