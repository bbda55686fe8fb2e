#!/usr/bin/env python3
"""Counts the operators of ONNX models: the table in models/README.md.

    histogram.py MODEL.onnx...           prints a Markdown table
    histogram.py --update README.md ...  replaces the table between its markers
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import onnx

BEGIN, END = "<!-- begin operator table -->", "<!-- end operator table -->"


def count_operators(model: onnx.ModelProto) -> Counter:
    counts: Counter = Counter()

    def visit(nodes):
        for node in nodes:
            domain = f"{node.domain}." if node.domain not in ("", "ai.onnx") else ""
            counts[domain + node.op_type] += 1
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    visit(graph.node)

    visit(model.graph.node)
    for function in model.functions:
        visit(function.node)
    return counts


def label(path: Path) -> str:
    return path.parent.name if path.stem == "model" else path.stem


def table(paths: list[Path]) -> str:
    models = [onnx.load(p, load_external_data=False) for p in paths]
    counts = [count_operators(m) for m in models]
    rows = ["| operator | " + " | ".join(label(p) for p in paths) + " |"]
    rows.append("| --- |" + " ---: |" * len(paths))
    opsets = [
        next(o.version for o in m.opset_import if o.domain in ("", "ai.onnx"))
        for m in models
    ]
    rows.append("| *opset* | " + " | ".join(map(str, opsets)) + " |")
    for name in sorted(set().union(*counts)):
        cells = (str(c[name]) if c[name] else "" for c in counts)
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    totals = " | ".join(str(sum(c.values())) for c in counts)
    rows.append(f"| *nodes* | {totals} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--update", type=Path, metavar="README")
    parser.add_argument("--section", default="", help="name in the markers")
    options = parser.parse_args()
    text = table(options.models)
    if not options.update:
        print(text)
        return
    suffix = f" {options.section} -->" if options.section else " -->"
    begin, end = BEGIN.replace(" -->", suffix), END.replace(" -->", suffix)
    page = options.update.read_text()
    head, _, rest = page.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"{options.update} has no markers {begin} ... {end}")
    options.update.write_text(f"{head}{begin}\n{text}\n{end}{tail}")


if __name__ == "__main__":
    main()
