"""Exported programs of PyTorch (.pt2) as those who compare with them see them: inputs and
outputs by the names that an engine gives them, in the types of an engine's precision."""

from __future__ import annotations

import copy
import importlib
import importlib.metadata
import json
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path

import torch

tree = torch.utils._pytree


def is_program(path: Path) -> bool:
    return zipfile.is_zipfile(path)


def read_programs(path: Path) -> dict[str, dict]:
    """A file's programs by name, as plain data."""
    with zipfile.ZipFile(path) as file:
        names = sorted(n for n in file.namelist() if "models/" in n and n.endswith(".json"))
        return {Path(n).stem: json.loads(file.read(n)) for n in names}


class TorchProgram:
    """A program, called with tensors by name; arguments that are no tensors are as traced."""

    def __init__(self, path: Path, name: str = ""):
        stored = read_programs(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not name and len(stored) > 1:
                raise ValueError(f"it holds several programs: {', '.join(stored)}; choose one with --program NAME")
            register_structures(stored.values())
            if name:
                from torch.export.pt2_archive._package import load_pt2

                programs = load_pt2(path).exported_programs
                if name not in programs:
                    raise ValueError(f"{path} has no program {name!r}, but {', '.join(programs)}")
                self.program = programs[name]
            else:
                self.program = torch.export.load(path)
        signature = self.program.graph_signature
        values = {n.name: n.meta["val"] for n in self.program.graph.nodes if n.op == "placeholder"}
        self.inputs = {
            name: values[name] for name in signature.user_inputs
            if isinstance(name, str) and isinstance(values[name], torch.Tensor)
        }  # fmt: skip
        results = [s.arg for s in signature.output_specs if s.kind.name == "USER_OUTPUT"]
        self.sizes = {i for i, v in enumerate(results) if type(v).__name__ == "SymIntArgument"}
        self.example = self.program.example_inputs
        self.output_keys = output_keys(stored[name] if name else next(iter(stored.values())))

    def module(self, device: str = "cpu", dtype: torch.dtype = torch.float32):
        """A copy that computes there. What the program converts to float32 it still does."""
        program = self.program
        if device != "cpu":
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, device)
        module = copy.deepcopy(program.module())
        # Checks of where tensors lie name a device without its number, which torch.compile's tensors have.
        for node in list(module.graph.nodes):
            if node.target is torch.ops.aten._assert_tensor_metadata.default:
                module.graph.erase_node(node)
        module.recompile()
        return module.to(dtype) if dtype != torch.float32 else module

    def arguments(self, tensors: dict[str, torch.Tensor]):
        rest = iter([tensors[name] for name in self.inputs])
        leaves, structure = tree.tree_flatten(self.example)
        return tree.tree_unflatten([next(rest) if isinstance(v, torch.Tensor) else v for v in leaves], structure)

    def outputs(self, result) -> dict[str, torch.Tensor]:
        """The tensors among the leaves, and sizes that vary, as an engine gives them; one without a key has
        its position for a name."""
        leaves = tree.tree_leaves(result)
        keys = self.output_keys if len(self.output_keys) == len(leaves) else []
        # Of leaves with one name the first has it.
        keys = [k if k not in keys[:i] else "" for i, k in enumerate(keys)]
        found, taken = {}, {k for k in keys if k}
        for position, value in enumerate(leaves):
            name, free = keys[position] if keys else "", position
            while not name:
                if f"output_{free}" not in taken:
                    name = f"output_{free}"
                    taken.add(name)
                free += 1
            if position in self.sizes and isinstance(value, int):
                value = torch.tensor(value)
            if isinstance(value, torch.Tensor):
                found[name] = value
        return found


def register_structures(programs: Iterable[dict]) -> None:
    """Classes of arguments and results (transformers' outputs, say) are known to PyTorch once the
    module that has them is imported. Only modules of installed packages are: a file says their names."""
    for name in sorted({name for program in programs for name in structure_names(program)}):
        module, _, _ = name.rpartition(".")
        if not module or name in tree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
            continue
        package = module.partition(".")[0]
        if package not in importlib.metadata.packages_distributions():
            raise ValueError(f"it takes or returns a {name}, and there is no package {package} here: pip install it")
        importlib.import_module(module)


def structure_names(program: dict) -> set[str]:
    """What containers a program's signatures are made of."""
    names, open_specs = set(), []
    for call in program["graph_module"]["module_call_graph"]:
        for key in ("in_spec", "out_spec"):
            spec = json.loads((call["signature"] or {}).get(key) or "null")
            open_specs += [spec[1]] if isinstance(spec, list) and len(spec) == 2 else []
    while open_specs:
        spec = open_specs.pop()
        names |= {spec["type"]} if isinstance(spec["type"], str) else set()
        open_specs += spec["children_spec"]
    return names


def output_keys(program: dict) -> list[str]:
    """The keys on the way to each leaf of what the exported function returns."""
    for call in program["graph_module"]["module_call_graph"]:
        if not call["fqn"] and call["signature"]:
            spec = json.loads(call["signature"]["out_spec"])
            return name_leaves(spec[1], "") if isinstance(spec, list) and len(spec) == 2 else []
    return []


def name_leaves(spec: dict, name: str) -> list[str]:
    if not spec["type"]:
        return [name]
    children = spec["children_spec"]
    try:
        context = json.loads(spec["context"])
    except (TypeError, ValueError):
        context = None
    keys = [k if isinstance(k, str) else "" for k in context] if isinstance(context, list) else []
    if len(keys) != len(children) or not any(keys):
        keys = [str(i) if name else "" for i in range(len(children))]
    joined = [f"{name}_{key}" if name and key else name or key for key in keys]
    return [leaf for child, key in zip(children, joined) for leaf in name_leaves(child, key)]
