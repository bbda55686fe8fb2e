// Operators that change the shape and keep the elements.
#include "frontends/common/builders/Pad.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

static AffineExpr product(llvm::ArrayRef<AffineExpr> sizes, Emitter &e) {
  AffineExpr result = productOf(sizes, e.getContext());
  return result
             ? result
             : AffineExpr(e.fail("the number of elements is absurdly large"));
}

/// Takes sizes that have names of their own, and stand at one place in front of
/// the open one, for equal: [b, s] as [p, -1] with another input's p.
static bool agreeInFront(const Exprs &dims, const Exprs &shape, unsigned open,
                         Emitter &e) {
  bool any = false;
  for (unsigned i = 0; i < open && i < shape.size(); ++i)
    if (dims[i] != shape[i] && llvm::isa<mlir::AffineSymbolExpr>(dims[i]) &&
        llvm::isa<mlir::AffineSymbolExpr>(shape[i])) {
      if (!e.agree(dims[i], shape[i], "keeps the number of elements"))
        return false;
      any = true;
    }
  return any;
}

/// One size may be open (-1, or not known): it follows from the others.
static llvm::LogicalResult reshapeTo(Node &n, Emitter &e, Exprs wanted) {
  Exprs shape = graph::getShape(n.input(0)), dims = std::move(wanted), others;
  std::optional<unsigned> open;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    auto known = dim ? graph::constantOf(dim) : std::optional<int64_t>(-1);
    if (known && *known == 0 && !n.flag("allowzero")) {
      if (i >= shape.size())
        return e.fail("size 0 at position " + Twine(i) +
                      " copies a dimension that the input, " +
                      e.describe(n.input(0).getType()) + ", does not have");
      dim = shape[i];
    } else if (known && *known == -1) {
      if (open)
        return dims[i] && dims[*open] ? e.fail("more than one size is -1")
                                      : n.dependsOnData(1);
      open = i;
      continue;
    } else if (known && *known < -1) {
      return e.fail("a size may not be " + Twine(*known));
    }
    others.push_back(dim);
  }
  if (open) {
    dims[*open] = divideSizes(shape, others, e.getContext());
    if (!dims[*open] && agreeInFront(dims, shape, *open, e)) {
      shape = graph::getShape(n.input(0));
      others.clear();
      for (AffineExpr &dim : dims)
        if (dim && (dim = e.getSymbols().resolve(dim)) != e.number(-1))
          others.push_back(dim);
      dims[*open] = divideSizes(shape, others, e.getContext());
    }
    if (!dims[*open])
      return e.fail("cannot tell size " + Twine(*open) +
                        " of the result: " + e.describe(n.input(0).getType()) +
                        " does not split by the other sizes, " +
                        e.describe(others),
                    "name equal sizes alike with --shape, or fix them");
  } else if (!e.agree(product(shape, e), product(dims, e),
                      "keeps the number of elements")) {
    return e.fail(e.describe(n.input(0).getType()) +
                      " does not have as many elements as " + e.describe(dims),
                  "check the shapes, or fix sizes with --shape");
  }
  return n.yield(e.reshape(n.input(0), dims));
}

static llvm::LogicalResult reshape(Node &n, Emitter &e) {
  auto wanted = n.partlyKnown(1);
  if (failed(wanted) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  return reshapeTo(n, e, *wanted);
}
static llvm::LogicalResult reshapeAttribute(Node &n, Emitter &e) {
  auto wanted = n.integers("shape");
  if (!wanted)
    return e.fail("attribute 'shape' is missing", "export the model again");
  return reshapeTo(n, e, e.numbers(*wanted));
}

static llvm::LogicalResult flatten(Node &n, Emitter &e) {
  Exprs shape = graph::getShape(n.input(0));
  int64_t rank = shape.size(), axis = n.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return e.fail("axis " + Twine(axis) + " is out of range for " +
                  Twine(rank) + " dimensions");
  if (axis < 0)
    axis += rank;
  auto part = llvm::ArrayRef(shape);
  return n.yield(e.reshape(n.input(0), {product(part.take_front(axis), e),
                                        product(part.drop_front(axis), e)}));
}

/// Axes from the attribute of older versions or the operand of newer ones.
static llvm::FailureOr<std::optional<SmallVector<int64_t>>> givenAxes(Node &n) {
  if (auto attribute = n.integers("axes"))
    return attribute;
  if (!n.has(1))
    return std::optional<SmallVector<int64_t>>();
  auto operand = n.constants(1);
  if (failed(operand))
    return llvm::failure();
  return std::optional(*operand);
}

/// The dimensions that are 1, which all others have to be known not to be.
static llvm::FailureOr<SmallVector<int64_t>> unitAxes(Node &n, Emitter &e) {
  SmallVector<int64_t> axes;
  Symbols &symbols = e.getSymbols();
  for (auto [i, size] : llvm::enumerate(graph::getShape(n.input(0)))) {
    mlir::AffineExpr dim = symbols.resolve(size);
    if (dim == e.number(1)) {
      axes.push_back(i);
      continue;
    }
    // A size to optimize for that is 1 is no reason to expect another.
    SmallVector<int64_t> optimum;
    for (const graph::Symbol &symbol : symbols.list())
      optimum.push_back(symbol.opt);
    if (!symbols.isAtLeast(dim, e.number(2)) &&
        (graph::evaluate(dim, optimum).value_or(1) < 2 ||
         !symbols.assumeAtLeast(dim, e.number(2),
                                "so that dimension " + std::to_string(i) +
                                    " stays")))
      return e.fail(
          "dimension " + Twine(i) + " of " + e.describe(n.input(0).getType()) +
              " goes where it is 1 and else stays, as no axes are given (" +
              symbols.describeRanges(dim) + ")",
          "give the axes, or fix that size or let its range start at 2 with "
          "--shape");
  }
  return axes;
}

static llvm::LogicalResult squeeze(Node &n, Emitter &e) {
  Exprs shape = graph::getShape(n.input(0)), dims;
  auto given = givenAxes(n);
  if (failed(given))
    return llvm::failure();
  SmallVector<int64_t> axes;
  if (*given) {
    auto checked = n.axes(**given, shape.size());
    if (failed(checked))
      return llvm::failure();
    axes = *checked;
    for (int64_t axis : axes)
      if (shape[axis] != e.number(1))
        return e.fail("dimension " + Twine(axis) + " of " +
                          e.describe(n.input(0).getType()) + " is not 1",
                      "fix that size with --shape");
  } else {
    auto all = unitAxes(n, e);
    if (failed(all))
      return llvm::failure();
    axes = *all;
  }
  for (auto [i, dim] : llvm::enumerate(shape))
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      dims.push_back(dim);
  return n.yield(e.reshape(n.input(0), dims));
}

static llvm::LogicalResult unsqueeze(Node &n, Emitter &e) {
  Exprs shape = graph::getShape(n.input(0)), dims;
  auto given = givenAxes(n);
  if (failed(given))
    return llvm::failure();
  int64_t rank = shape.size() + (*given ? (*given)->size() : 0);
  auto axes = n.axes(*given ? **given : SmallVector<int64_t>(), rank);
  if (failed(axes))
    return llvm::failure();
  auto *next = shape.begin();
  for (int64_t i = 0; i < rank; ++i)
    dims.push_back(llvm::is_contained(*axes, i) ? e.number(1) : *next++);
  return n.yield(e.reshape(n.input(0), dims));
}

static llvm::LogicalResult transpose(Node &n, Emitter &e) {
  int64_t rank = rankOf(n.input(0));
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rank)));
  if (auto given = n.integers("perm"); given && !given->empty())
    permutation = *given;
  SmallVector<int64_t> sorted = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (static_cast<int64_t>(permutation.size()) != rank ||
      !std::is_permutation(sorted.begin(), sorted.end(), permutation.begin()))
    return e.fail("attribute 'perm' is not a permutation of the " +
                  Twine(rank) + " dimensions of the input");
  return n.yield(e.transpose(n.input(0), permutation));
}

/// Both ways: the result's shape is the broadcast of the input's and the
/// operand.
static llvm::LogicalResult expand(Node &n, Emitter &e) {
  auto wanted = n.known(1);
  if (failed(wanted) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  Exprs shape = graph::getShape(n.input(0));
  auto dims = e.join(shape, *wanted);
  if (!dims)
    return e.fail(
        e.describe(n.input(0).getType()) + " does not broadcast to " +
            e.describe(*wanted),
        "check the model, or the names and ranges that --shape gives these "
        "sizes");
  return n.yield(e.broadcast(n.input(0), *dims));
}

/// Each dimension [n] becomes [repeats, n], broadcast and flattened.
static llvm::LogicalResult tile(Node &n, Emitter &e) {
  auto repeats = n.known(1);
  if (failed(repeats))
    return llvm::failure();
  return n.yield(buildTile(n.input(0), *repeats, e));
}
/// Until opset 5 along one axis.
static llvm::LogicalResult tileAxis(Node &n, Emitter &e) {
  auto repeats = n.known(1);
  auto given = n.constantInteger(2);
  int64_t rank = rankOf(n.input(0));
  if (failed(repeats) || failed(given))
    return llvm::failure();
  auto axis = n.axis(*given, rank);
  if (failed(axis))
    return llvm::failure();
  if (repeats->size() != 1)
    return e.fail("input 1 has to have one element, not " +
                  Twine(repeats->size()));
  Exprs all(rank, e.number(1));
  all[*axis] = repeats->front();
  return n.yield(buildTile(n.input(0), all, e));
}

/// The block size, and the sizes of [N, C, H, W].
static llvm::FailureOr<int64_t> readBlock(Node &n, Emitter &e) {
  if (failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  int64_t block = n.integer("blocksize");
  if (block < 1 || block > (int64_t(1) << 20))
    return e.fail("attribute 'blocksize' may not be " + Twine(block));
  return block;
}
static llvm::FailureOr<bool> isColumnFirst(Node &n, Emitter &e) {
  std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return e.fail("attribute 'mode' has to be DCR or CRD, not '" + mode + "'");
  return mode == "CRD";
}

static llvm::LogicalResult depthToSpace(Node &n, Emitter &e) {
  auto block = readBlock(n, e);
  auto columnFirst = isColumnFirst(n, e);
  if (failed(block) || failed(columnFirst))
    return llvm::failure();
  Exprs s = graph::getShape(n.input(0));
  AffineExpr b = e.number(*block),
             depth = divideSizes({s[1]}, {b, b}, e.getContext());
  if (!depth)
    return e.fail("channels of " + e.describe(n.input(0).getType()) +
                  " do not split into blocks of " + Twine(*block));
  Value x = *columnFirst
                ? e.reshape(n.input(0), {s[0], depth, b, b, s[2], s[3]})
                : e.reshape(n.input(0), {s[0], b, b, depth, s[2], s[3]});
  x = *columnFirst ? e.transpose(x, {0, 1, 4, 2, 5, 3})
                   : e.transpose(x, {0, 3, 4, 1, 5, 2});
  return n.yield(e.reshape(
      x, {s[0], depth, product({s[2], b}, e), product({s[3], b}, e)}));
}

static llvm::LogicalResult spaceToDepth(Node &n, Emitter &e) {
  auto block = readBlock(n, e);
  auto columnFirst = isColumnFirst(n, e);
  if (failed(block) || failed(columnFirst))
    return llvm::failure();
  Exprs s = graph::getShape(n.input(0));
  AffineExpr b = e.number(*block);
  AffineExpr height = divideSizes({s[2]}, {b}, e.getContext());
  AffineExpr width = divideSizes({s[3]}, {b}, e.getContext());
  if (!height || !width)
    return e.fail(e.describe(n.input(0).getType()) +
                  " does not split into blocks of " + Twine(*block));
  Value x = e.reshape(n.input(0), {s[0], s[1], height, b, width, b});
  x = *columnFirst ? e.transpose(x, {0, 1, 3, 5, 2, 4})
                   : e.transpose(x, {0, 3, 5, 1, 2, 4});
  return n.yield(e.reshape(x, {s[0], product({s[1], b, b}, e), height, width}));
}

llvm::ArrayRef<Row> charonia::frontend::onnx::viewRows() {
  static const Row rows[] = {
      {"", "Reshape", 1, 1, reshapeAttribute},
      {"", "Reshape", 5, 25, reshape},
      {"", "Flatten", 1, 25, flatten},
      {"", "Squeeze", 1, 25, squeeze},
      {"", "Unsqueeze", 1, 25, unsqueeze},
      {"", "Transpose", 1, 25, transpose},
      {"", "Expand", 8, 13, expand},
      {"", "Tile", 1, 1, tileAxis},
      {"", "Tile", 6, 13, tile},
      {"", "DepthToSpace", 1, 28, depthToSpace},
      {"", "SpaceToDepth", 1, 28, spaceToDepth},
  };
  return rows;
}
