"""Exported programs of PyTorch (pt2_*_cases.py make them) against PyTorch's results."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import harness
import numpy as np
import pytest

FILES = sorted((Path(__file__).resolve().parent / "pt2").glob("*.pt2"))

# What has to be known of sizes.
SHAPES = {"branch": ["--shape", "x=?x7..64x6"]}
assert FILES


def arrays(path: Path, kind: str) -> list[np.ndarray]:
    """Those of NAME.pt2 are for NAME-core.pt2 too."""
    path = path.with_name(path.name.replace("-core", ""))
    with zipfile.ZipFile(path) as file:
        names = [n for n in file.namelist() if f"/extra/{kind}" in n]
        names.sort(key=lambda n: int(n.rpartition(kind)[2].removesuffix(".npy")))
        return [np.load(io.BytesIO(file.read(n))) for n in names]


def input_names(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as file:
        [entry] = [n for n in file.namelist() if "/models/" in n]
        module = json.loads(file.read(entry))["graph_module"]
    specs = zip(module["signature"]["input_specs"], module["graph"]["inputs"])
    return [arg["as_tensor"]["name"] for spec, arg in specs if "user_input" in spec]


def check(want: np.ndarray, got: np.ndarray) -> str:
    """Each element by its own size: the largest must not hide what is wrong with the others.
    Of those that are smaller than most, as of sums that cancel, by what most are."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if want.dtype.kind != "f":
        return "" if (got == want).all() else f"{got} is not {want}"
    limit = {np.float16: 2e-3, np.float64: 1e-12}.get(want.dtype.type, 1e-5)
    a, b = want.astype(np.float64), got.astype(np.float64)
    sizes = np.abs(a[np.isfinite(a)])
    sizes = sizes[sizes > 1e-12 * sizes.max(initial=0)]  # what is less, rounding left
    typical = min(1.0, np.median(sizes)) if sizes.size else 1.0
    with np.errstate(invalid="ignore"):
        away = np.abs(a - b) / np.maximum(np.abs(a), typical)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (away <= limit)
    return "" if same.all() else f"differs by {np.nanmax(away[~same])} of its size: {got} is not {want}"


@pytest.mark.parametrize("path", FILES, ids=[f.stem for f in FILES])
def test_program(path: Path, tmp_path: Path) -> None:
    engine = tmp_path / "m.engine"
    harness.compile_model(path, engine, extra=SHAPES.get(path.stem, []))
    inputs = dict(zip(input_names(path), arrays(path, "in"), strict=True))
    wanted = arrays(path, "out")
    out = tmp_path / "out"
    arguments = ["run", engine, "--output-dir", out]
    for index, (name, value) in enumerate(inputs.items()):
        np.save(tmp_path / f"in{index}.npy", value)
        arguments += ["--input", f"{name}={tmp_path / f'in{index}.npy'}"]
    result = harness.invoke(*arguments)
    assert result.kind == "ok", result.stderr
    lines = [line.rpartition(f": {out}/") for line in result.stdout.splitlines()]
    got = {name: np.load(out / file) for name, found, file in lines if found}
    assert len(got) == len(wanted)
    wrong = {
        name: text for (name, value), want in zip(got.items(), wanted)
        if (text := check(want, value))
    }  # fmt: skip
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())


def test_branch_of_an_open_size(tmp_path: Path) -> None:
    path = Path(__file__).resolve().parent / "pt2/branch.pt2"
    result = harness.invoke("compile", path, "-o", tmp_path / "m.engine")
    assert result.kind == "refused"
    assert "higher_order.cond is not supported: which branch is taken depends on sizes" in result.stderr
    assert "narrow the ranges with --shape, so that it does not" in result.stderr


def test_steps_of_an_open_size(tmp_path: Path) -> None:
    engine = tmp_path / "m.engine"
    harness.compile_model(Path(__file__).resolve().parent / "pt2/steps.pt2", engine)
    for steps in (4, 9, 40):
        x = np.random.default_rng(steps).standard_normal((3, steps, 6)).astype(np.float32)
        count, state = harness.run_all_outputs(engine, {"x": x}, tmp_path).values()
        want = np.zeros((3, 6), np.float32)
        for i in range(steps):
            want = want * np.float32(0.5) + x[:, i]
        assert count == steps
        np.testing.assert_allclose(state, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ("guarded", "asserted"))
def test_guards(name: str, tmp_path: Path) -> None:
    """What a program's branches ask of sizes is asked when shapes are bound, and told before:
    guards, and nodes that assert it."""
    engine = tmp_path / "m.engine"
    notes = harness.compile_model(Path(__file__).resolve().parent / f"pt2/{name}.pt2", engine).stderr
    cases = [
        ((8, 6), "must be at least 1", "x.size()[1] % 4", "Mod(x_dim1, 4)"),
        ((6, 6), "must be at least", "x.size()[1] > y.size()[1]", "'y_dim1 < x_dim1'"),
        ((3, 2), "(x_dim1 = 3) must be at least 5", "x.size()[1] // 5", "Eq((x_dim1//5), 1)"),
        ((9, 4), "(y_dim1 = 4) must not equal 4", "y.size()[1] != 4", "Ne(y_dim1, 4)"),
    ]
    for (n, m), words, guard, assertion in cases:
        inputs = {"x": np.ones((3, n, 4), np.float32), "y": np.ones((3, m, 4), np.float32)}
        with pytest.raises(harness.CharoniaError) as failed:
            harness.run_all_outputs(engine, inputs, tmp_path)
        message = failed.value.result.stderr
        condition = guard if name == "guarded" else assertion
        assert words in message and condition in message, message
        assert condition in notes, notes
    if name == "asserted":
        assert "check 'Ne(y_dim1, 77)' of the program" in notes, notes


@pytest.mark.parametrize("name", ("colliding", "capitals"))
def test_guards_of_arguments_named_alike(name: str, tmp_path: Path) -> None:
    path, engine = Path(__file__).resolve().parent / f"pt2/{name}.pt2", tmp_path / "m.engine"
    harness.compile_model(path, engine)
    first, second = input_names(path)
    for n, m in ((7, 9), (8, 7), (5, 6)):
        x, y = np.ones(n, np.float32), np.ones(m, np.float32)
        twice, more = harness.run_all_outputs(engine, {first: x, second: y}, tmp_path).values()
        assert (twice == 2).all() and (more == 2).all()
    with pytest.raises(harness.CharoniaError) as failed:
        harness.run_all_outputs(engine, {first: x, second: np.ones(8, np.float32)}, tmp_path)
    assert f"{second}_dim0 % 3 = 2 must be at most 1" in failed.value.result.stderr


def test_writes_of_sizes_that_have_to_be_equal(tmp_path: Path) -> None:
    """One block of 64 rows: of ranges it follows, without them and the guard it is assumed."""
    path, engine = Path(__file__).resolve().parent / "pt2/chunked.pt2", tmp_path / "m.engine"
    bare = tmp_path / "bare.pt2"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bare, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if "/models/" in name:
                text = json.dumps(json.loads(text) | {"guards_code": []}).encode()
            new.writestr(name, text)
    result = harness.compile_model(bare, engine, extra=["--shape", "x=1..8x10..16..63x6"])
    assert "needs this of its sizes" not in result.stderr
    harness.compile_model(bare, engine)
    x = np.ones((2, 70, 6), np.float32)
    with pytest.raises(harness.CharoniaError) as failed:
        harness.run_all_outputs(engine, {"x": x}, tmp_path)
    assert "x_dim1" in failed.value.result.stderr
    assert np.isfinite(harness.run_all_outputs(engine, {"x": x[:, :60]}, tmp_path)["output_0"]).all()


def test_least_size_that_shape_says(tmp_path: Path) -> None:
    """2 is what the exporter leaves of sizes that are not traced: 1 may be said."""
    path, engine = Path(__file__).resolve().parent / "pt2/chunked.pt2", tmp_path / "m.engine"
    for name in ("guarded", "bare"):
        file = tmp_path / f"{name}.pt2"
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(file, "w") as new:
            for entry in old.namelist():
                text = old.read(entry)
                if "/models/" in entry:
                    root = json.loads(text)
                    [symbol] = [s for s, r in root["range_constraints"].items() if r["min_val"] == 2]
                    root["range_constraints"][symbol]["max_val"] = 64
                    root["guards_code"] = ["L['x'].size()[1] <= 64"] if name == "guarded" else []
                    text = json.dumps(root).encode()
                new.writestr(entry, text)
        x = {"x": np.ones((1, 1, 6), np.float32)}
        harness.compile_model(file, engine)
        if name == "guarded":
            harness.run_all_outputs(engine, x, tmp_path)
            continue
        with pytest.raises(harness.CharoniaError) as failed:
            harness.run_all_outputs(engine, x, tmp_path)
        assert "built for x_dim1 in 2..64" in failed.value.result.stderr
        harness.compile_model(file, engine, extra=["--shape", "x=?x1..64x6"])
        harness.run_all_outputs(engine, x, tmp_path)


def test_file_of_several_programs(tmp_path: Path) -> None:
    folder = Path(__file__).resolve().parent
    both = tmp_path / "both.pt2"
    with zipfile.ZipFile(both, "w") as out:
        for name in ("pool", "arithmetic"):
            with zipfile.ZipFile(folder / f"pt2/{name}.pt2") as file:
                [entry] = [n for n in file.namelist() if "/models/" in n]
                out.writestr(f"both/models/{name}.json", file.read(entry))
    engine = tmp_path / "m.engine"
    harness.compile_model(both, engine, extra=["--program", "pool"])
    assert "input x: float32 [x_dim0, 4, 9, 7]" in harness.invoke("inspect", engine).stdout.replace("  ", " ")
    for extra, words in (
        ([], "holds several programs: arithmetic, pool\n  remedy: choose one with --program NAME"),
        (["--program", "none"], "has no program 'none', but arithmetic, pool"),
    ):
        result = harness.invoke("compile", both, "-o", engine, *extra)
        assert result.code == 1 and words in result.stderr
    model = folder.parent.parent / "models/digits/digits.onnx"
    result = harness.invoke("compile", model, "-o", engine, "--program", "pool")
    assert result.code == 1
    assert "holds one model, so 'pool' cannot be chosen from it" in result.stderr


def weights_of(path: Path) -> dict[str, np.ndarray]:
    """Parameters that lie in row-major order."""
    with zipfile.ZipFile(path) as file:
        [entry] = [n for n in file.namelist() if n.endswith("_weights_config.json")]
        config = json.loads(file.read(entry))["config"]
        folder = entry.rpartition("/")[0]
        found = {}
        for name, weight in config.items():
            meta = weight["tensor_meta"]
            shape, strides = ([s["as_int"] for s in meta[k]] for k in ("sizes", "strides"))
            value = np.frombuffer(file.read(f"{folder}/{weight['path_name']}"), np.float32)
            found[name] = np.lib.stride_tricks.as_strided(
                value[meta["storage_offset"]["as_int"] :], shape, [4 * s for s in strides]
            ).copy()  # fmt: skip
        return found


def test_weights_of_another_file(tmp_path: Path) -> None:
    """y = conv(x) is linear in weights and biases: all by two gives 2 y, wherever they lie."""
    path = Path(__file__).resolve().parent / "pt2/conv.pt2"
    doubled = {name: value * 2 for name, value in weights_of(path).items()}
    file = harness.save_safetensors(tmp_path / "w.safetensors", doubled)
    engine, out = tmp_path / "m.engine", tmp_path / "out"
    result = harness.compile_model(path, engine, extra=["--weights", file])
    assert "keep the model's values" not in result.stderr
    np.save(tmp_path / "x.npy", arrays(path, "in")[0])
    ran = harness.invoke("run", engine, "--input", tmp_path / "x.npy", "--output-dir", out)
    assert ran.kind == "ok", ran.stderr
    for index, want in enumerate(arrays(path, "out")):
        assert not check(2 * want, np.load(out / f"output_{index}.npy"))
    first, *rest = doubled
    doubled[first] = doubled[first].astype(np.float16)
    doubled["more"] = np.zeros(3, np.float32)
    result = harness.invoke("compile", path, "-o", engine, "--weights", harness.save_safetensors(file, doubled))
    assert result.code == 1 and "2 of its tensors do not fit the model:" in result.stderr
    assert f"'{first}' is F16 [" in result.stderr and "'more' is no weight of the model" in result.stderr
    result = harness.invoke("compile", path, "-o", engine, "--weights", harness.save_safetensors(file, {first: doubled[first].astype(np.float32)}))
    assert result.kind == "ok" and f"'{rest[0]}'" in result.stderr


def test_onnx_weights_of_another_file(tmp_path: Path) -> None:
    """y = reshape(x + w) * v: weights by their initializers' names, of an index's files too."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(3)
    old = {"w": rng.random((2, 3), np.float32), "v": rng.random(6, np.float32), "shape": np.array([-1], np.int64)}
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["a"]), helper.make_node("Reshape", ["a", "shape"], ["b"]),
         helper.make_node("Mul", ["b", "v"], ["y"])],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6])],
        [numpy_helper.from_array(value, name) for name, value in old.items()],
    )  # fmt: skip
    path, engine, x = tmp_path / "m.onnx", tmp_path / "m.engine", rng.random((2, 3), np.float32)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    folder = tmp_path / "weights"
    folder.mkdir()

    def run(weights: Path) -> tuple[np.ndarray, str]:
        result = harness.compile_model(path, engine, extra=["--weights", weights])
        return harness.run_all_outputs(engine, {"x": x}, tmp_path)["y"], result.stderr

    new = {"w": rng.random((2, 3), np.float32), "v": rng.random(6, np.float32)}
    got, notes = run(harness.save_safetensors(tmp_path / "one.safetensors", {"w": new["w"]}))
    assert np.allclose(got, (x + new["w"]).ravel() * old["v"], rtol=1e-6)
    assert "has no tensors for 1 weights, which keep the model's values:\n  'v'" in notes
    for name, value in new.items():
        harness.save_safetensors(folder / f"{name}.safetensors", {name: value})
    index = {"weight_map": {name: f"{name}.safetensors" for name in new}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    got, notes = run(folder)
    assert np.allclose(got, (x + new["w"]).ravel() * new["v"], rtol=1e-6) and "keep the model's" not in notes
    file = harness.save_safetensors(tmp_path / "w.safetensors", {"w": new["v"], "v": new["v"].astype(np.float16), "u": x})
    result = harness.invoke("compile", path, "-o", tmp_path / "none.engine", "--weights", file)
    assert result.code == 1 and "3 of its tensors do not fit the model:" in result.stderr
    assert "'w' is F32 [6], in the model float32[2, 3]" in result.stderr
    assert "'v' is F16 [6], in the model float32[6]" in result.stderr
    assert "'u' is no weight of the model" in result.stderr and not (tmp_path / "none.engine").exists()
    result = harness.invoke("compile", path, "-o", file, "--weights", file)
    assert result.code == 2 and "the engine would replace the weights" in result.stderr
    result = harness.invoke("compile", path, "-o", engine, "--weights", tmp_path / "nothing")
    assert result.code == 1 and "nothing: cannot be read: No such file or directory" in result.stderr


def test_what_is_no_file_of_weights(tmp_path: Path) -> None:
    path, engine = Path(__file__).resolve().parent / "pt2/pool.pt2", tmp_path / "m.engine"
    weights, pickle = harness.save_safetensors(tmp_path / "w.safetensors", {}), tmp_path / "w.pth"
    result = harness.invoke("compile", path, "-o", engine, "--weights", weights)
    assert result.code == 1 and "w.safetensors: has no tensors" in result.stderr
    with zipfile.ZipFile(pickle, "w") as file:
        file.writestr("w/data.pkl", b"")
    result = harness.invoke("compile", path, "-o", engine, "--weights", pickle)
    assert result.code == 1 and "is a pickle of torch.save" in result.stderr
    assert "safetensors.torch.save_file(" in result.stderr
    result = harness.invoke("compile", weights, "-o", engine)
    assert result.code == 1 and "holds weights alone, without a model" in result.stderr
    assert "and this one with --weights" in result.stderr


def test_weights_in_place_of_those_that_are_not_there(tmp_path: Path) -> None:
    """ONNX's own contents are not read where others stand for them."""
    import onnx
    from onnx import TensorProto, helper

    rng = np.random.default_rng(3)
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="gone.data")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", info[:1], info[1:], [weight])
    path, engine = tmp_path / "m.onnx", tmp_path / "m.engine"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    x, new = rng.random((2, 3), np.float32), rng.random((2, 3), np.float32)
    file = harness.save_safetensors(tmp_path / "w.safetensors", {"w": new})
    harness.compile_model(path, engine, extra=["--weights", file])
    assert np.allclose(harness.run_all_outputs(engine, {"x": x}, tmp_path)["y"], x + new, rtol=1e-6)
    # What was not looked at is not told of as wrong.
    file = harness.save_safetensors(tmp_path / "w.safetensors", {"w": new.astype(np.float16), "v": new})
    result = harness.invoke("compile", path, "-o", engine, "--weights", file)
    assert result.code == 1 and "gone.data" in result.stderr and "'w' is F16 [2, 3]" in result.stderr
    assert "'v'" not in result.stderr


def test_files_by_their_contents(tmp_path: Path) -> None:
    program = (Path(__file__).resolve().parent / "pt2/pool.pt2").read_bytes()
    for name in ("m.pb", "m.onnx", "m"):
        (tmp_path / name).write_bytes(program)
        harness.compile_model(tmp_path / name, tmp_path / "m.engine")
    pointer = tmp_path / "m.pt2"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    result = harness.invoke("compile", pointer, "-o", tmp_path / "m.engine")
    assert result.code == 1 and "is a pointer of Git LFS, not the file itself" in result.stderr
    assert "git lfs pull" in result.stderr


def test_output_names(tmp_path: Path) -> None:
    """Keys of what is returned: of two that are joined to one name the first has it."""
    result = harness.compile_model(Path(__file__).resolve().parent / "pt2/grids.pt2", tmp_path / "m.engine")
    assert "several outputs are named 'a_b'" in result.stderr
    words = harness.invoke("inspect", tmp_path / "m.engine").stdout
    names = [line.split()[1].rstrip(":") for line in words.splitlines() if line.strip().startswith("output ")]
    assert names == ["output_0", "output_1", "output_2", "output_3", "output_4", "a_b", "output_6", "output_7"]


def test_groups_of_data_are_told(tmp_path: Path) -> None:
    result = harness.compile_model(Path(__file__).resolve().parent / "pt2/experts.pt2", tmp_path / "m.engine")
    text = "the groups' sizes follow from data, so that all rows are multiplied with all 3 matrices"
    assert result.stderr.count(text) == 4 and "aten._grouped_mm.default" in result.stderr
