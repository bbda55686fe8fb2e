#include "frontends/tensorflow/ops/Blocks.h"
#include "frontends/common/builders/Pad.h"
#include "frontends/common/builders/Shape.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// x with lows and highs, one a dimension; negative ones cut.
static Value padAll(Value x, const Exprs &lows, const Exprs &highs,
                    Emitter &e) {
  if (!x)
    return {};
  return buildPad(graph::PadMode::constant, x,
                  e.scalar(int64_t(0), elementOf(x)), lows, highs,
                  llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x))), e);
}

/// What lies inside of each block moves in front of the batch.
static Value toBlocks(Value x, llvm::ArrayRef<int64_t> sizes, Emitter &e) {
  if (!x)
    return {};
  Exprs shape = graph::getShape(x), split = {shape[0]}, result = {shape[0]};
  SmallVector<int64_t> inner, outer;
  for (size_t d = 1; d < shape.size(); ++d) {
    AffineExpr block = e.number(sizes[d]), rest = shape[d];
    if (sizes[d] != 1) {
      rest = divideSizes({shape[d]}, {block}, e.getContext());
      if (!rest)
        return e.fail("size " + e.getSymbols().toString(shape[d]) +
                          " does not split into blocks of " + Twine(sizes[d]),
                      "fix that size with --shape");
      result[0] = productOfSizes({result[0], block}, e);
    }
    outer.push_back(static_cast<int64_t>(split.size()));
    split.push_back(rest);
    result.push_back(rest);
    if (sizes[d] != 1) {
      inner.push_back(static_cast<int64_t>(split.size()));
      split.push_back(block);
    }
  }
  if (!result[0])
    return {};
  SmallVector<int64_t> permutation = inner;
  permutation.push_back(0);
  permutation.append(outer);
  return e.reshape(e.transpose(e.reshape(x, split), permutation), result);
}

/// The other way round.
static Value fromBlocks(Value x, llvm::ArrayRef<int64_t> sizes, Emitter &e) {
  Exprs shape = graph::getShape(x), split, joined;
  SmallVector<int64_t> blocked;
  for (size_t d = 1; d < sizes.size(); ++d)
    if (sizes[d] != 1) {
      blocked.push_back(static_cast<int64_t>(d));
      split.push_back(e.number(sizes[d]));
    }
  int64_t count = static_cast<int64_t>(blocked.size()), next = 0;
  AffineExpr batch = divideSizes({shape[0]}, Exprs(split), e.getContext());
  if (!batch)
    return e.fail("the batch of " + e.describe(x.getType()) +
                  " does not split into its blocks");
  split.push_back(batch);
  split.append(shape.begin() + 1, shape.end());
  joined = {batch};
  SmallVector<int64_t> permutation = {count};
  for (size_t d = 1; d < shape.size(); ++d) {
    permutation.push_back(count + static_cast<int64_t>(d));
    joined.push_back(shape[d]);
    if (sizes[d] != 1) {
      permutation.push_back(next++);
      joined.back() = productOfSizes({shape[d], e.number(sizes[d])}, e);
    }
  }
  if (!llvm::all_of(joined, [](AffineExpr dim) { return bool(dim); }))
    return {};
  return e.reshape(e.transpose(e.reshape(x, split), permutation), joined);
}

Value charonia::frontend::tensorflow::layOut(const Blocks &blocks, Emitter &e) {
  Value padded = padAll(blocks.source, blocks.lows, blocks.highs, e);
  return toBlocks(padded ? blocks.make(padded, e) : Value(), blocks.sizes, e);
}

std::optional<Item>
charonia::frontend::tensorflow::squeezeBlocks(const Blocks &blocks,
                                              llvm::ArrayRef<int64_t> given) {
  int64_t rank = static_cast<int64_t>(blocks.sizes.size());
  if (given.size() != 1 || given[0] < -rank || given[0] >= rank)
    return std::nullopt;
  int64_t axis = given[0] < 0 ? given[0] + rank : given[0];
  if (axis == 0 || blocks.sizes[axis] != 1)
    return std::nullopt;
  auto squeezed = std::make_shared<Blocks>(blocks);
  squeezed->sizes.erase(squeezed->sizes.begin() + axis);
  squeezed->dims.erase(squeezed->dims.begin() + axis);
  squeezed->make = [make = blocks.make, axis](Value padded,
                                              Emitter &e) -> Value {
    Value x = make(padded, e);
    return x ? buildSqueeze(x, {axis}, e) : Value();
  };
  Item item;
  item.blocks = std::move(squeezed);
  return item;
}

std::optional<Item>
charonia::frontend::tensorflow::expandBlocks(const Blocks &blocks,
                                             int64_t given) {
  int64_t rank = static_cast<int64_t>(blocks.sizes.size()) + 1;
  int64_t axis = given < 0 ? given + rank : given;
  if (axis < 1 || axis >= rank)
    return std::nullopt;
  auto expanded = std::make_shared<Blocks>(blocks);
  expanded->sizes.insert(expanded->sizes.begin() + axis, 1);
  expanded->dims.insert(expanded->dims.begin() + axis, -1);
  expanded->make = [make = blocks.make, axis](Value padded,
                                              Emitter &e) -> Value {
    Value x = make(padded, e);
    if (!x)
      return {};
    Exprs shape = graph::getShape(x);
    shape.insert(shape.begin() + axis, e.number(1));
    return e.reshape(x, shape);
  };
  Item item;
  item.blocks = std::move(expanded);
  return item;
}

/// The sizes of blocks by dimension, and two numbers for each dimension that
/// operands 1 and 2 are about.
struct BlockOperands {
  SmallVector<int64_t> sizes;
  Exprs lows, highs;
};
static llvm::FailureOr<BlockOperands> readBlocks(Node &n, Emitter &e,
                                                 size_t rank) {
  if (n.numInputs() != 3 || failed(n.needsRank(1, 1, 1)) ||
      failed(n.needsRank(2, 2, 2)))
    return e.fail("has not the operands that it needs", "export again");
  auto sizes = n.constants(1);
  auto pairs = n.known(2);
  if (failed(sizes) || failed(pairs))
    return llvm::failure();
  if (pairs->size() != 2 * sizes->size() || sizes->size() >= rank)
    return e.fail("its blocks do not fit a tensor of rank " + Twine(rank));
  BlockOperands blocks{SmallVector<int64_t>(rank, 1), Exprs(rank, e.number(0)),
                       Exprs(rank, e.number(0))};
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    AffineExpr low = (*pairs)[2 * i], high = (*pairs)[2 * i + 1];
    bool ok = size >= 1 && size <= (int64_t(1) << 20);
    for (AffineExpr amount : {low, high})
      if (auto known = graph::constantOf(amount))
        ok = ok && *known >= 0 && *known <= maxDimension;
    if (!ok)
      return e.fail("a block of " + Twine(size) + " with " +
                    e.getSymbols().toString(low) + " and " +
                    e.getSymbols().toString(high) + " is not supported");
    blocks.sizes[i + 1] = size;
    blocks.lows[i + 1] = low;
    blocks.highs[i + 1] = high;
  }
  return blocks;
}

static LogicalResult spaceToBatch(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  size_t rank = rankOf(n.input(0));
  auto given = readBlocks(n, e, rank);
  if (failed(given))
    return llvm::failure();
  auto blocks = std::make_shared<Blocks>();
  blocks->source = n.input(0);
  blocks->lows = given->lows;
  blocks->highs = given->highs;
  blocks->sizes = given->sizes;
  blocks->dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  blocks->make = [](Value padded, Emitter &) { return padded; };
  Item item;
  item.blocks = std::move(blocks);
  return n.yieldItem(std::move(item));
}

/// Crops instead of padding. What was cropped behind a convolution that keeps
/// every position need not be padded before it.
static LogicalResult batchToSpace(Node &n, Emitter &e) {
  const Blocks *blocks = n.blocks(0);
  auto given =
      readBlocks(n, e, blocks ? blocks->sizes.size() : rankOf(n.input(0)));
  if (failed(given))
    return llvm::failure();
  auto isCut = [&](size_t d) {
    return given->lows[d] != e.number(0) || given->highs[d] != e.number(0);
  };
  bool fits = blocks && blocks->sizes == given->sizes;
  for (size_t d = 0; fits && d < given->sizes.size(); ++d)
    fits = given->sizes[d] != 1 || !isCut(d);
  if (fits) {
    Exprs lows = blocks->lows, highs = blocks->highs;
    for (size_t d = 0; d < given->sizes.size(); ++d) {
      if (given->sizes[d] == 1)
        continue;
      int64_t dim = blocks->dims[d];
      lows[dim] = graph::simplify(lows[dim] - given->lows[d]);
      highs[dim] = graph::simplify(highs[dim] - given->highs[d]);
    }
    Value padded = padAll(blocks->source, lows, highs, e);
    return n.yield(padded ? blocks->make(padded, e) : Value());
  }
  if (!n.layOut(0) || failed(n.needsTensors(3, 3)))
    return llvm::failure();
  Value x = fromBlocks(n.input(0), given->sizes, e);
  for (Exprs *amounts : {&given->lows, &given->highs})
    for (AffineExpr &amount : *amounts)
      amount = graph::simplify(amount * -1);
  return n.yield(padAll(x, given->lows, given->highs, e));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::blockRows() {
  static const Row rows[] = {
      {"SpaceToBatchND", spaceToBatch},
      {"BatchToSpaceND", batchToSpace, "", true},
  };
  return rows;
}
