// Rows that are divided into parts by data, and joined again.
#include "frontends/common/builders/Sequence.h"
#include "frontends/tensorflow/Node.h"
#include <set>

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// Rows of a tensor whose first `divided` dimensions are made one.
static Value flatRows(Value x, int64_t divided, Emitter &e) {
  if (!x || divided == 1)
    return x;
  Exprs dims = graph::getShape(x);
  AffineExpr count = e.number(1);
  for (AffineExpr dim : llvm::ArrayRef(dims).take_front(divided))
    count = graph::simplify(count * dim);
  dims.erase(dims.begin(), dims.begin() + divided);
  dims.insert(dims.begin(), count);
  return e.reshape(x, dims);
}

/// Of which rows the part is, as truths that broadcast beside the rows.
static Value chosenRows(const Part &part, Value rows, Emitter &e) {
  Value parts = flatRows(part.parts, rankOf(part.parts), e);
  Value chosen = e.compare(graph::Predicate::eq, parts,
                           e.scalar(part.number, elementOf(parts)));
  return e.asChannels(chosen, rankOf(rows) - 1);
}

Value charonia::frontend::tensorflow::positionsOf(const Part &part,
                                                  Emitter &e) {
  if (!part.rows)
    return {};
  return e.select(chosenRows(part, part.rows, e), part.rows,
                  e.scalar(int64_t(0), elementOf(part.rows)));
}

/// How many rows a part has depends on data, but all parts together have all
/// of them: each is kept as all rows, until they are joined.
static LogicalResult partition(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)))
    return llvm::failure();
  Value data = n.input(0), parts = n.input(1);
  int64_t divided = rankOf(parts), count = n.integer("num_partitions", 0);
  constexpr int64_t maxParts = 4096;
  if (count < 1 || count > maxParts)
    return e.fail("has " + Twine(count) + " partitions; 1 to " +
                      Twine(maxParts) + " are supported",
                  "divide into fewer parts");
  Exprs dims = graph::getShape(data), front = graph::getShape(parts);
  if (divided < 1 || rankOf(data) < divided)
    return e.fail("divides " + e.describe(data.getType()) + " by " +
                      e.describe(parts.getType()),
                  "give one number for each row");
  for (auto [dim, other] : llvm::zip(dims, front))
    if (!e.agree(dim, other, "has one number for each row"))
      return e.fail("divides " + e.describe(data.getType()) + " by " +
                        e.describe(parts.getType()),
                    "give one number for each row");
  Value rows = flatRows(data, divided, e);
  for (int64_t number = 0; number < count; ++number) {
    Item item;
    item.part = std::make_shared<Part>(Part{rows, parts, number, count});
    if (failed(n.yieldItem(std::move(item))))
      return llvm::failure();
  }
  return llvm::success();
}

/// Whether parts of one division, which are all of its parts, say where each
/// row was.
static bool putBack(const Node &n, unsigned count, Emitter &e) {
  const Part *first = n.part(0);
  if (!first || first->count != int64_t(count))
    return false;
  std::set<int64_t> numbers;
  for (unsigned i = 0; i < count; ++i) {
    const Part *place = n.part(i), *row = n.part(count + i);
    if (!place || !row || !place->rows || !row->rows ||
        place->parts != first->parts || row->parts != first->parts ||
        place->number != row->number || place->number >= int64_t(count) ||
        place->rows != first->rows || !numbers.insert(place->number).second)
      return false;
  }
  return rankOf(first->rows) == 1 && countsFromZero(first->rows, e);
}

/// Rows by places that are constants.
static LogicalResult joinByConstants(Node &n, unsigned count, Emitter &e) {
  SmallVector<int64_t> sources;
  Values rows;
  int64_t seen = 0;
  for (unsigned i = 0; i < count; ++i) {
    auto places = n.constants(i);
    if (failed(places))
      return llvm::failure();
    int64_t divided = rankOf(n.input(i));
    if (rankOf(n.input(count + i)) < divided)
      return e.fail("has fewer rows than places", "export the model again");
    Exprs dims = graph::getShape(n.input(i)),
          given = graph::getShape(n.input(count + i));
    if (!std::equal(dims.begin(), dims.end(), given.begin()))
      return e.fail("has " + e.describe(n.input(count + i).getType()) +
                        " for places " + e.describe(n.input(i).getType()),
                    "export the model again");
    Value data = n.input(count + i);
    if (divided == 0) {
      given.insert(given.begin(), e.number(1));
      data = e.reshape(data, given);
    }
    rows.push_back(flatRows(data, std::max<int64_t>(divided, 1), e));
    for (int64_t place : *places) {
      constexpr int64_t maxRows = 1 << 24;
      if (place < 0 || place >= maxRows)
        return e.fail("has a row at place " + Twine(place),
                      "export the model again");
      if (place >= int64_t(sources.size()))
        sources.resize(place + 1, -1);
      sources[place] = seen++;
    }
  }
  if (llvm::is_contained(sources, -1))
    return e.fail("leaves rows open, which TensorFlow fills with anything",
                  "give a row for each place");
  Value places = e.constant(mlir::DenseElementsAttr::get(
      mlir::RankedTensorType::get({int64_t(sources.size())},
                                  e.getBuilder().getI64Type()),
      llvm::ArrayRef(sources)));
  return n.yield(e.op<graph::GatherOp>({e.concat(rows, 0), places},
                                       e.attr("axis", int64_t(0))));
}

/// Rows put to the places that say where they are: of parts, back to where they
/// were before they were divided.
static LogicalResult stitch(Node &n, Emitter &e) {
  unsigned count = n.numInputs() / 2;
  if (count == 0 || n.numInputs() % 2)
    return e.fail("has " + Twine(n.numInputs()) +
                      " inputs, which are no pairs of places and rows",
                  "the file is damaged: export the model again");
  auto isPart = [&](unsigned i) { return n.part(i) != nullptr; };
  if (llvm::none_of(llvm::seq(0u, n.numInputs()), isPart))
    return failed(n.needsTensors(2 * count, 2 * count))
               ? llvm::failure()
               : joinByConstants(n, count, e);
  if (!putBack(n, count, e))
    return e.fail("joins rows at places that depend on data, and are not where "
                  "one DynamicPartition had all of them",
                  "divide rows and their positions, tf.range(n), by the same "
                  "numbers, and join all parts");
  // Rows of no part are an error in TensorFlow.
  Value joined;
  for (unsigned i = 0; i < count; ++i) {
    const Part &rows = *n.part(count + i);
    joined = joined
                 ? e.select(chosenRows(rows, rows.rows, e), rows.rows, joined)
                 : rows.rows;
  }
  return n.yield(joined);
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::partitionRows() {
  static const Row rows[] = {
      {"DynamicPartition", partition},
      {"DynamicStitch", stitch},
      {"ParallelDynamicStitch", stitch},
  };
  return rows;
}
