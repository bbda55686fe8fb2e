// Operators that change the shape and keep the elements.
#include "frontends/common/builders/Pad.h"
#include "frontends/common/builders/Shape.h"
#include "frontends/tensorflow/ops/Blocks.h"
#include "frontends/tensorflow/ops/Window.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

static LogicalResult reshape(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  auto dims = n.partlyKnown(1);
  if (failed(dims))
    return llvm::failure();
  // A size that depends on data may follow from the others.
  if (llvm::count(*dims, AffineExpr()) > 1)
    return n.dependsOnData(1);
  for (AffineExpr &dim : *dims)
    if (!dim)
      dim = e.number(-1);
  return n.yield(buildReshape(n.input(0), *dims, e));
}

static LogicalResult squeeze(Node &n, Emitter &e) {
  if (auto *blocks = n.blocks(0)) {
    if (auto squeezed = squeezeBlocks(*blocks, n.integers("squeeze_dims")))
      return n.yieldItem(std::move(*squeezed));
    if (!n.layOut(0))
      return llvm::failure();
  }
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  SmallVector<int64_t> given = n.integers("squeeze_dims");
  auto axes = given.empty() ? unitAxes(n.input(0), e)
                            : n.axes(given, rankOf(n.input(0)));
  return failed(axes) ? llvm::failure()
                      : n.yield(buildSqueeze(n.input(0), *axes, e));
}

static LogicalResult expandDims(Node &n, Emitter &e) {
  if (auto *blocks = n.blocks(0)) {
    auto given = n.constantInteger(1);
    if (succeeded(given))
      if (auto expanded = expandBlocks(*blocks, *given))
        return n.yieldItem(std::move(*expanded));
    if (failed(given) || !n.layOut(0))
      return llvm::failure();
  }
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  auto given = n.constantInteger(1);
  if (failed(given))
    return llvm::failure();
  Exprs dims = graph::getShape(n.input(0));
  auto axis = n.axis(*given, dims.size() + 1);
  if (failed(axis))
    return llvm::failure();
  dims.insert(dims.begin() + *axis, e.number(1));
  return n.yield(e.reshape(n.input(0), dims));
}

static LogicalResult transpose(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  int64_t rank = rankOf(n.input(0));
  auto given = n.constants(1);
  if (failed(given))
    return llvm::failure();
  auto permutation = n.axes(*given, rank);
  if (failed(permutation))
    return llvm::failure();
  if (static_cast<int64_t>(permutation->size()) != rank)
    return e.fail("has " + Twine(permutation->size()) +
                  " dimensions to exchange of " + Twine(rank));
  return n.yield(e.transpose(n.input(0), *permutation));
}

static LogicalResult broadcastTo(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  auto wanted = n.known(1);
  if (failed(wanted))
    return llvm::failure();
  auto dims = e.join(graph::getShape(n.input(0)), *wanted);
  if (!dims)
    return e.fail(e.describe(n.input(0).getType()) + " does not broadcast to " +
                      e.describe(*wanted),
                  "check the model, or the names and ranges that --shape "
                  "gives these sizes");
  return n.yield(e.broadcast(n.input(0), *dims));
}

static LogicalResult tile(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  auto repeats = n.known(1);
  return failed(repeats) ? llvm::failure()
                         : n.yield(buildTile(n.input(0), *repeats, e));
}

/// The block's size.
static llvm::FailureOr<int64_t> readBlock(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)) || failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  int64_t block = n.integer("block_size", 0);
  if (block < 1 || block > (int64_t(1) << 20))
    return e.fail("attribute 'block_size' may not be " + Twine(block));
  return block;
}

/// Where height and channels are.
struct ImageAxes {
  int64_t height, channels;
};
static llvm::FailureOr<ImageAxes> axesOf(Node &n, Emitter &e) {
  auto last = channelsAreLast(n, e);
  if (failed(last))
    return llvm::failure();
  return *last ? ImageAxes{1, 3} : ImageAxes{2, 1};
}

static LogicalResult depthToSpace(Node &n, Emitter &e) {
  auto block = readBlock(n, e);
  auto axes = failed(block) ? llvm::FailureOr<ImageAxes>() : axesOf(n, e);
  if (failed(axes))
    return llvm::failure();
  Exprs s = graph::getShape(n.input(0));
  AffineExpr b = e.number(*block), height = s[axes->height],
             width = s[axes->height + 1],
             depth = divideSizes({s[axes->channels]}, {b, b}, e.getContext());
  if (!depth)
    return e.fail("channels of " + e.describe(n.input(0).getType()) +
                  " do not split into blocks of " + Twine(*block));
  AffineExpr high = productOfSizes({height, b}, e),
             wide = productOfSizes({width, b}, e);
  if (axes->channels == 1) {
    Value x = e.reshape(n.input(0), {s[0], b, b, depth, height, width});
    x = e.transpose(x, {0, 3, 4, 1, 5, 2});
    return n.yield(e.reshape(x, {s[0], depth, high, wide}));
  }
  Value x = e.reshape(n.input(0), {s[0], height, width, b, b, depth});
  x = e.transpose(x, {0, 1, 3, 2, 4, 5});
  return n.yield(e.reshape(x, {s[0], high, wide, depth}));
}

static LogicalResult spaceToDepth(Node &n, Emitter &e) {
  auto block = readBlock(n, e);
  auto axes = failed(block) ? llvm::FailureOr<ImageAxes>() : axesOf(n, e);
  if (failed(axes))
    return llvm::failure();
  Exprs s = graph::getShape(n.input(0));
  AffineExpr b = e.number(*block), channels = s[axes->channels];
  AffineExpr parts[2];
  for (int64_t i : {0, 1}) {
    AffineExpr size = s[axes->height + i];
    parts[i] = divideSizes({size}, {b}, e.getContext());
    // Said of each size, and not of the number of elements.
    if (!parts[i] || !e.getSymbols().assumeEqual(
                         size, graph::simplify(parts[i] * b),
                         "splits it into blocks of " + std::to_string(*block)))
      return e.fail(e.describe(n.input(0).getType()) +
                    " does not split into blocks of " + Twine(*block));
  }
  auto [height, width] = parts;
  AffineExpr depth = productOfSizes({b, b, channels}, e);
  if (axes->channels == 1) {
    Value x = e.reshape(n.input(0), {s[0], channels, height, b, width, b});
    x = e.transpose(x, {0, 3, 5, 1, 2, 4});
    return n.yield(e.reshape(x, {s[0], depth, height, width}));
  }
  Value x = e.reshape(n.input(0), {s[0], height, b, width, b, channels});
  x = e.transpose(x, {0, 1, 3, 2, 4, 5});
  return n.yield(e.reshape(x, {s[0], height, width, depth}));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::viewRows() {
  static const Row rows[] = {
      ofParts({"Reshape", reshape}),
      ofParts({"Squeeze", squeeze, "", true}),
      ofParts({"ExpandDims", expandDims, "", true}),
      ofParts({"Transpose", transpose}),
      ofParts({"BroadcastTo", broadcastTo}),
      ofParts({"Tile", tile}),
      ofParts({"DepthToSpace", depthToSpace}),
      ofParts({"SpaceToDepth", spaceToDepth}),
  };
  return rows;
}
