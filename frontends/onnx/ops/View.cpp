// Operators that change the shape and keep the elements.
#include "frontends/common/builders/Pad.h"
#include "frontends/common/builders/Shape.h"
#include "frontends/onnx/Registry.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// One size may be open (-1, or not known): it follows from the others.
static llvm::LogicalResult reshapeTo(Node &n, Emitter &e, Exprs wanted) {
  Exprs shape = graph::getShape(n.input(0)), dims = wanted;
  bool open = false;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    auto known = dim ? graph::constantOf(dim) : std::nullopt;
    if (known && *known == 0 && !n.flag("allowzero")) {
      if (i >= shape.size())
        return e.fail("size 0 at position " + Twine(i) +
                      " copies a dimension that the input, " +
                      e.describe(n.input(0).getType()) + ", does not have");
      dim = shape[i];
    } else if (!dim || (known && *known == -1)) {
      if (open && !llvm::all_of(wanted, [](AffineExpr d) { return bool(d); }))
        return n.dependsOnData(1);
      open = true;
      dim = e.number(-1);
    }
  }
  return n.yield(buildReshape(n.input(0), dims, e));
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
  return n.yield(
      e.reshape(n.input(0), {productOfSizes(part.take_front(axis), e),
                             productOfSizes(part.drop_front(axis), e)}));
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

static llvm::LogicalResult squeeze(Node &n, Emitter &e) {
  auto given = givenAxes(n);
  if (failed(given))
    return llvm::failure();
  auto axes =
      *given ? n.axes(**given, rankOf(n.input(0))) : unitAxes(n.input(0), e);
  return failed(axes) ? llvm::failure()
                      : n.yield(buildSqueeze(n.input(0), *axes, e));
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
  return n.yield(e.reshape(x, {s[0], depth, productOfSizes({s[2], b}, e),
                               productOfSizes({s[3], b}, e)}));
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
  // Said of each size, and not of the number of elements.
  std::string why = "splits it into blocks of " + std::to_string(*block);
  if (!height || !width || !e.agree(graph::simplify(height * b), s[2], why) ||
      !e.agree(graph::simplify(width * b), s[3], why))
    return e.fail(e.describe(n.input(0).getType()) +
                  " does not split into blocks of " + Twine(*block));
  Value x = e.reshape(n.input(0), {s[0], s[1], height, b, width, b});
  x = *columnFirst ? e.transpose(x, {0, 1, 3, 5, 2, 4})
                   : e.transpose(x, {0, 3, 5, 1, 2, 4});
  return n.yield(
      e.reshape(x, {s[0], productOfSizes({s[1], b, b}, e), height, width}));
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
