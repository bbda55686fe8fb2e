// Operators that change the shape and keep the elements.
#include "frontends/common/builders/Pad.h"
#include "frontends/common/builders/Shape.h"
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
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  SmallVector<int64_t> given = n.integers("squeeze_dims");
  auto axes = given.empty() ? unitAxes(n.input(0), e)
                            : n.axes(given, rankOf(n.input(0)));
  return failed(axes) ? llvm::failure()
                      : n.yield(buildSqueeze(n.input(0), *axes, e));
}

static LogicalResult expandDims(Node &n, Emitter &e) {
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

/// The block's size; channels have to be last.
static llvm::FailureOr<int64_t> readBlock(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)) || failed(n.needsRank(0, 4, 4)))
    return llvm::failure();
  auto last = channelsAreLast(n, e);
  int64_t block = n.integer("block_size", 0);
  if (failed(last))
    return llvm::failure();
  if (!*last)
    return e.fail("data_format NCHW is not supported",
                  "export the model with channels last");
  if (block < 1 || block > (int64_t(1) << 20))
    return e.fail("attribute 'block_size' may not be " + Twine(block));
  return block;
}

static LogicalResult depthToSpace(Node &n, Emitter &e) {
  auto block = readBlock(n, e);
  if (failed(block))
    return llvm::failure();
  Exprs s = graph::getShape(n.input(0));
  AffineExpr b = e.number(*block),
             depth = divideSizes({s[3]}, {b, b}, e.getContext());
  if (!depth)
    return e.fail("channels of " + e.describe(n.input(0).getType()) +
                  " do not split into blocks of " + Twine(*block));
  Value x = e.reshape(n.input(0), {s[0], s[1], s[2], b, b, depth});
  x = e.transpose(x, {0, 1, 3, 2, 4, 5});
  return n.yield(e.reshape(x, {s[0], productOfSizes({s[1], b}, e),
                               productOfSizes({s[2], b}, e), depth}));
}

static LogicalResult spaceToDepth(Node &n, Emitter &e) {
  auto block = readBlock(n, e);
  if (failed(block))
    return llvm::failure();
  Exprs s = graph::getShape(n.input(0));
  AffineExpr b = e.number(*block),
             height = divideSizes({s[1]}, {b}, e.getContext()),
             width = divideSizes({s[2]}, {b}, e.getContext());
  if (!height || !width)
    return e.fail(e.describe(n.input(0).getType()) +
                  " does not split into blocks of " + Twine(*block));
  Value x = e.reshape(n.input(0), {s[0], height, b, width, b, s[3]});
  x = e.transpose(x, {0, 1, 3, 2, 4, 5});
  return n.yield(
      e.reshape(x, {s[0], height, width, productOfSizes({b, b, s[3]}, e)}));
}

/// The block sizes of the spatial dimensions, and two numbers for each.
struct Blocks {
  SmallVector<int64_t> sizes, lows, highs;
};
static llvm::FailureOr<Blocks> readBlocks(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)) || failed(n.needsRank(1, 1, 1)) ||
      failed(n.needsRank(2, 2, 2)))
    return llvm::failure();
  auto sizes = n.constants(1), pairs = n.constants(2);
  if (failed(sizes) || failed(pairs))
    return llvm::failure();
  if (pairs->size() != 2 * sizes->size() ||
      static_cast<int64_t>(sizes->size()) >= rankOf(n.input(0)))
    return e.fail("its blocks do not fit " + e.describe(n.input(0).getType()));
  Blocks blocks{*sizes, {}, {}};
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    int64_t low = (*pairs)[2 * i], high = (*pairs)[2 * i + 1];
    if (size < 1 || size > (int64_t(1) << 20) || low < 0 || high < 0 ||
        low > maxDimension || high > maxDimension)
      return e.fail("a block of " + Twine(size) + " with " + Twine(low) +
                    " and " + Twine(high) + " is not supported");
    blocks.lows.push_back(low);
    blocks.highs.push_back(high);
  }
  return blocks;
}

/// Pads, and moves what lies inside of each block in front of the batch.
static LogicalResult spaceToBatch(Node &n, Emitter &e) {
  auto blocks = readBlocks(n, e);
  if (failed(blocks))
    return llvm::failure();
  int64_t count = blocks->sizes.size();
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(1, count + 1));
  Value x = n.input(0);
  x = buildPad(graph::PadMode::constant, x, e.scalar(int64_t(0), elementOf(x)),
               e.numbers(blocks->lows), e.numbers(blocks->highs), axes, e);
  if (!x)
    return llvm::failure();
  Exprs shape = graph::getShape(x), split = {shape[0]}, result;
  SmallVector<int64_t> permutation;
  AffineExpr batch = shape[0];
  result.push_back(batch);
  for (int64_t i = 0; i < count; ++i) {
    AffineExpr b = e.number(blocks->sizes[i]),
               outer = divideSizes({shape[i + 1]}, {b}, e.getContext());
    if (!outer)
      return e.fail("size " + e.getSymbols().toString(shape[i + 1]) +
                    " does not split into blocks of " +
                    Twine(blocks->sizes[i]));
    split.append({outer, b});
    permutation.push_back(2 * i + 2);
    result[0] = productOfSizes({result[0], b}, e);
    result.push_back(outer);
  }
  permutation.push_back(0);
  for (int64_t i = 0; i < count; ++i)
    permutation.push_back(2 * i + 1);
  for (size_t d = count + 1; d < shape.size(); ++d) {
    permutation.push_back(static_cast<int64_t>(d) + count);
    split.push_back(shape[d]);
    result.push_back(shape[d]);
  }
  if (!result[0])
    return llvm::failure();
  return n.yield(
      e.reshape(e.transpose(e.reshape(x, split), permutation), result));
}

/// The other way round; crops instead of padding.
static LogicalResult batchToSpace(Node &n, Emitter &e) {
  auto blocks = readBlocks(n, e);
  if (failed(blocks))
    return llvm::failure();
  int64_t count = blocks->sizes.size();
  Exprs shape = graph::getShape(n.input(0)), split, divisors;
  for (int64_t size : blocks->sizes)
    split.push_back(e.number(size));
  AffineExpr batch = divideSizes({shape[0]}, Exprs(split), e.getContext());
  if (!batch)
    return e.fail("the batch of " + e.describe(n.input(0).getType()) +
                  " does not split into its blocks");
  split.push_back(batch);
  split.append(shape.begin() + 1, shape.end());
  SmallVector<int64_t> permutation = {count}, lows(shape.size(), 0);
  Exprs joined = {batch};
  for (int64_t i = 0; i < count; ++i) {
    permutation.append({count + 1 + i, i});
    joined.push_back(
        productOfSizes({shape[i + 1], e.number(blocks->sizes[i])}, e));
  }
  for (size_t d = count + 1; d < shape.size(); ++d) {
    permutation.push_back(static_cast<int64_t>(d) + count);
    joined.push_back(shape[d]);
  }
  if (!llvm::all_of(joined, [](AffineExpr dim) { return bool(dim); }))
    return llvm::failure();
  Value x =
      e.reshape(e.transpose(e.reshape(n.input(0), split), permutation), joined);
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(1, count + 1));
  Exprs cutLow, cutHigh;
  for (int64_t i = 0; i < count; ++i) {
    cutLow.push_back(e.number(-blocks->lows[i]));
    cutHigh.push_back(e.number(-blocks->highs[i]));
  }
  return n.yield(buildPad(graph::PadMode::constant, x,
                          x ? e.scalar(int64_t(0), elementOf(x)) : x, cutLow,
                          cutHigh, axes, e));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::viewRows() {
  static const Row rows[] = {
      {"Reshape", reshape},
      {"Squeeze", squeeze},
      {"ExpandDims", expandDims},
      {"Transpose", transpose},
      {"BroadcastTo", broadcastTo},
      {"Tile", tile},
      {"DepthToSpace", depthToSpace},
      {"SpaceToDepth", spaceToDepth},
      {"SpaceToBatchND", spaceToBatch},
      {"BatchToSpaceND", batchToSpace},
  };
  return rows;
}
