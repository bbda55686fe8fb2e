"""Tile programs as text, written operation by operation."""


def affine(dims, symbols, exprs):
    names = ", ".join(f"d{i}" for i in range(dims))
    syms = ", ".join(f"s{i}" for i in range(symbols))
    return f"affine_map<({names})[{syms}] -> ({', '.join(map(str, exprs))})>"


class Program:
    """Text of one kernel; values are strings like '%3', types are kept beside."""

    def __init__(self, name, grid, warps=4, stages=3, symbols=()):
        self.name, self.warps, self.stages, self.grid = name, warps, stages, grid
        self.symbols = list(symbols)  # (name, value, divisor)
        self.buffers, self.lines, self.types, self.n = [], [], {}, 0
        self.indent = 1

    def buffer(self, dtype):
        name = f"%b{len(self.buffers)}"
        self.buffers.append((name, dtype))
        return name

    def emit(self, text, type=None, results=1):
        if type is None:
            self.lines.append("  " * self.indent + text)
            return None
        self.n += 1
        name = f"%{self.n}v"
        name = f"%v{self.n}"
        self.lines.append("  " * self.indent + f"{name} = {text}")
        self.types[name] = type
        return name

    def index(self, value):
        return self.emit(f"arith.constant {value} : index", "index")

    def pid(self):
        return self.emit("tile.program_id : index", "index")

    def arith(self, op, a, b):
        return self.emit(f"arith.{op} {a}, {b} : {self.types[a]}", self.types[a])

    def unary(self, op, a):
        return self.emit(f"{op} {a} : {self.types[a]}", self.types[a])

    def cast(self, op, a, dtype):
        to = self.types[a].rsplit("x", 1)[0] + "x" + dtype + ">"
        return self.emit(f"arith.{op} {a} : {self.types[a]} to {to}", to)

    def const(self, value, shape, dtype):
        type = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
        return self.emit(f"arith.constant dense<{value}> : {type}", type)

    def _access(self, symbols, dims, exprs, shape, checks, rank, extra=""):
        checks = ": " + ", ".join(map(str, checks)) if checks else ""
        return (
            f"{{map = {affine(dims, len(symbols), exprs)}, "
            f"shape = affine_map<()[{', '.join(f's{i}' for i in range(len(symbols)))}] -> ({', '.join(map(str, shape))})>, "
            f"rank = {rank if rank is not None else len(shape)} : i64, checks = array<i64{checks}>{extra}}}"
        )

    def load(self, buffer, symbols, tile, exprs, shape, checks=(), rank=None, independent=False):
        dtype = dict(self.buffers)[buffer]
        type = f"tensor<{'x'.join(map(str, tile))}x{dtype}>"
        attrs = self._access(symbols, len(tile), exprs, shape, checks, rank,
                             ", independent" if independent else "")
        types = ", ".join([f"!tile.buffer<{dtype}>"] + [self.types[s] for s in symbols])
        return self.emit(f"tile.load {buffer}[{', '.join(symbols)}] {attrs} : ({types}) -> {type}", type)

    def store(self, value, buffer, symbols, exprs, shape, checks=(), rank=None):
        dtype = dict(self.buffers)[buffer]
        dims = self.types[value].count("x") if "x" in self.types[value] else 0
        attrs = self._access(symbols, dims, exprs, shape, checks, rank)
        types = ", ".join([self.types[value], f"!tile.buffer<{dtype}>"] + [self.types[s] for s in symbols])
        self.emit(f"tile.store {value}, {buffer}[{', '.join(symbols)}] {attrs} : {types}")

    def reduce(self, value, axis, op):
        shape = self.types[value][7:-1].split("x")
        dtype = shape[-1]
        rest = "x".join(shape[:axis] + shape[axis + 1:])
        type = f"tensor<{rest}>"
        return self.emit(
            f"tile.reduce {value} {{axis = {axis} : i64}} : ({self.types[value]}) -> {type} {{\n"
            f"    ^bb0(%l: {dtype}, %r: {dtype}):\n      %o = {op} %l, %r : {dtype}\n"
            f"      tile.yield %o : {dtype}\n    }}", type)

    def broadcast(self, value, axes, shape):
        dtype = self.types[value][7:-1].split("x")[-1]
        type = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
        return self.emit(
            f"tile.broadcast {value} {{axes = array<i64: {', '.join(map(str, axes))}>}} : {self.types[value]} -> {type}",
            type)

    def transpose(self, value, permutation):
        shape = self.types[value][7:-1].split("x")
        type = "tensor<" + "x".join([shape[p] for p in permutation] + [shape[-1]]) + ">"
        return self.emit(
            f"tile.transpose {value} {{permutation = array<i64: {', '.join(map(str, permutation))}>}} : {self.types[value]} -> {type}",
            type)

    def dot(self, a, b, c, tf32=False):
        return self.emit(
            f"tile.dot {a}, {b}, {c} {'{tf32}' if tf32 else ''} : {self.types[a]}, {self.types[b]} -> {self.types[c]}",
            self.types[c])

    def loop(self, count, carried, body):
        """for i in range(count): carried = body(i, carried); returns the results."""
        zero, one = self.index(0), self.index(1)
        end = count if isinstance(count, str) else self.index(count)
        types = [self.types[c] for c in carried]
        self.n += 1
        id = self.n
        inner = [f"%c{id}_{i}" for i in range(len(carried))]
        for name, type in zip(inner, types):
            self.types[name] = type
        iv = f"%i{id}"
        self.types[iv] = "index"
        args = ", ".join(f"{a} = {b}" for a, b in zip(inner, carried))
        self.emit(f"%r{id}:{len(carried)} = scf.for {iv} = {zero} to {end} step {one} iter_args({args}) -> ({', '.join(types)}) {{")
        self.indent += 1
        results = body(iv, inner)
        self.emit(f"scf.yield {', '.join(results)} : {', '.join(types)}")
        self.indent -= 1
        self.emit("}")
        names = [f"%r{id}#{i}" for i in range(len(carried))]
        for name, type in zip(names, types):
            self.types[name] = type
        return names

    def text(self):
        args = [f"{n}: !tile.buffer<{t}>" for n, t in self.buffers]
        for name, _, divisor in self.symbols:
            args.append(f"%{name}: index" + (f" {{tile.divisor = {divisor} : i64}}" if divisor > 1 else ""))
        syms = ", ".join(f"s{i}" for i in range(len(self.symbols)))
        return (
            f"func.func @{self.name}({', '.join(args)})\n"
            f"    attributes {{tile.kernel, tile.grid = affine_map<()[{syms}] -> ({self.grid})>, "
            f"tile.warps = {self.warps} : i64, tile.stages = {self.stages} : i64}} {{\n"
            + "\n".join(self.lines) + "\n  return\n}\n")

    def symbol(self, name):
        self.types["%" + name] = "index"
        return "%" + name
