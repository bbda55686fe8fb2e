// Sequences and optional values: lists of bindings while the model is read, and
// nothing behind that. Those of an open length are tensors behind a list.
#include "frontends/common/builders/Gather.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Tensors.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::onnx;
using llvm::LogicalResult;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;
using ::onnx::AttributeProto;
using ::onnx::NodeProto;

using Sequence = std::vector<Value>;

/// Tensors that all sequences of a model may hold: they are counted as written
/// out.
constexpr int64_t maxLength = 8192;

static const AttributeProto *find(const NodeProto &node, StringRef name) {
  for (const AttributeProto &attribute : node.attribute())
    if (name == attribute.name())
      return &attribute;
  return nullptr;
}
static int64_t integer(const NodeProto &node, StringRef name,
                       int64_t otherwise) {
  auto *attribute = find(node, name);
  return attribute ? attribute->i() : otherwise;
}

/// The place in a sequence of `length` that `value` names.
static llvm::FailureOr<size_t> placeIn(Value value, int64_t length,
                                       const char *what, Emitter &e) {
  auto known = e.evaluate(value).constants();
  if (!known || known->size() != 1)
    return e.fail("a place in a sequence is not supported unless it follows "
                  "from constants and sizes that are known",
                  "fix these sizes with --shape, or export the model without "
                  "sequences");
  int64_t place = known->front();
  if (place < 0)
    place += length;
  if (place < 0 || place >= length)
    return e.fail("place " + Twine(known->front()) + " is not in a sequence " +
                  what + " " + Twine(length) + " tensors");
  return static_cast<size_t>(place);
}

static llvm::FailureOr<int64_t> axisOf(const NodeProto &node, int64_t rank,
                                       Emitter &e) {
  int64_t given = integer(node, "axis", 0),
          axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    return e.fail("attribute 'axis' is " + Twine(given) +
                  ", but the tensors have " + Twine(rank) + " dimensions");
  return axis;
}

/// Where the parts of SplitToSequence end: one an entry of the input, or each
/// `size` elements, or each one.
static llvm::FailureOr<Exprs> partSizes(Value split, AffineExpr extent,
                                        Emitter &e) {
  Exprs parts;
  if (split && rankOf(split) == 1) {
    graph::SymbolicTensor sizes = e.evaluateSizes(split);
    if (!sizes.isComplete())
      return e.fail("parts whose sizes depend on data are not supported",
                    "replace them by constants");
    parts.assign(sizes.elements->begin(), sizes.elements->end());
    AffineExpr sum = e.number(0);
    for (AffineExpr part : parts) {
      if (!e.getSymbols().isNonNegative(part))
        return e.fail("a part may not have " + e.getSymbols().toString(part) +
                      " elements");
      sum = graph::simplify(sum + part);
    }
    if (!e.agree(sum, extent, "splits them"))
      return e.fail("parts of " + e.getSymbols().toString(sum) +
                    " elements in all do not make up " +
                    e.getSymbols().toString(extent));
    return parts;
  }
  int64_t size = 1;
  if (split) {
    auto known = e.evaluate(split).constants();
    if (!known || known->size() != 1 || known->front() < 1)
      return e.fail("the size of the parts has to be known and at least 1",
                    "replace it by a constant");
    size = known->front();
  }
  auto total = graph::constantOf(extent);
  if (!total || *total > maxLength * std::min<int64_t>(size, maxDimension))
    return e.fail("a sequence of parts of " + e.getSymbols().toString(extent) +
                      " elements is not supported: how many there are has to "
                      "be known, and no more than " +
                      Twine(maxLength),
                  "fix that size with --shape");
  for (int64_t at = 0; at < *total; at += size)
    parts.push_back(e.number(std::min(size, *total - at)));
  return parts;
}

static LogicalResult splitTensor(const NodeProto &node, Value x, Value split,
                                 Sequence &result, Emitter &e) {
  auto axis = axisOf(node, rankOf(x), e);
  if (failed(axis))
    return llvm::failure();
  auto parts = partSizes(split, graph::getShape(x)[*axis], e);
  if (failed(parts) || failed(e.writeOut(static_cast<int64_t>(parts->size()))))
    return llvm::failure();
  // The text of ONNX says that keepdims counts for nothing where sizes are
  // given; ONNX Runtime, and PyTorch's exporter that relies on it, drop the
  // axis where all parts are of one size, 1.
  bool drops = rankOf(split) == 0 && !integer(node, "keepdims", 1) &&
               llvm::all_of(*parts, [&](AffineExpr size) { return size == 1; });
  AffineExpr start = e.number(0);
  for (AffineExpr size : *parts) {
    Value part = sliceAlong(x, *axis, {start, size}, e);
    if (!part)
      return llvm::failure();
    if (drops) {
      Exprs dims = graph::getShape(part);
      dims.erase(dims.begin() + *axis);
      part = e.reshape(part, dims);
    }
    result.push_back(part);
    start = graph::simplify(start + size);
  }
  return llvm::success();
}

/// Whether an open dimension is split into parts of one element.
static bool isSplitOpen(const NodeProto &node, Value x, Value split,
                        Emitter &e) {
  int64_t given = integer(node, "axis", 0), rank = rankOf(x),
          axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank || graph::constantOf(graph::getShape(x)[axis]))
    return false;
  auto size = split ? e.evaluate(split).constants()
                    : std::optional(SmallVector<int64_t>{1});
  return size && size->size() == 1 && size->front() == 1 && rankOf(split) == 0;
}

/// The parts of one element, stacked.
static Value splitSingly(const NodeProto &node, Value x, Value split,
                         Emitter &e) {
  auto axis = axisOf(node, rankOf(x), e);
  if (failed(axis))
    return {};
  SmallVector<int64_t> order = {*axis};
  for (int64_t i = 0; i < rankOf(x); ++i)
    if (i != *axis)
      order.push_back(i);
  Value parts = e.transpose(x, order);
  if (!parts || !integer(node, "keepdims", 1))
    return parts;
  Exprs dims = graph::getShape(parts);
  dims.insert(dims.begin() + 1 + *axis, e.number(1));
  return e.reshape(parts, dims);
}

/// Whether all tensors of a sequence, of which there are some, have one type.
static bool isAlike(const Sequence &sequence) {
  return !sequence.empty() && llvm::all_of(sequence, [&](Value v) {
    return v && v.getType() == sequence.front().getType();
  });
}

/// The tensor at a place that is data, of tensors that are alike.
static Value chooseTensor(const Sequence &sequence, Value place, Emitter &e) {
  Exprs dims = graph::getShape(sequence.front());
  dims.insert(dims.begin(), e.number(1));
  Values parts;
  for (Value part : sequence)
    parts.push_back(e.reshape(part, dims));
  return e.op<graph::GatherOp>({e.concat(parts, 0), e.reshape(place, {})},
                               e.attr("axis", int64_t(0)));
}

static LogicalResult joinTensors(const NodeProto &node, const Sequence &parts,
                                 Value &result, Emitter &e) {
  if (parts.empty())
    return e.fail("there is nothing to join in an empty sequence");
  bool isNew = integer(node, "new_axis", 0) != 0;
  auto axis = axisOf(node, rankOf(parts.front()) + isNew, e);
  if (failed(axis))
    return llvm::failure();
  Values joined;
  for (Value part : parts) {
    if (isNew) {
      Exprs dims = graph::getShape(part);
      if (*axis > static_cast<int64_t>(dims.size()))
        return e.fail("the tensors of the sequence do not have one rank");
      dims.insert(dims.begin() + *axis, e.number(1));
      part = e.reshape(part, dims);
    }
    joined.push_back(part);
  }
  result = e.concat(joined, *axis);
  return llvm::success(bool(result));
}

/// All tensors of a sequence of open length, stacked.
static Value stackAll(const Binding &from, Emitter &e) {
  Values parts;
  for (Value part : *from.sequence) {
    Exprs dims = graph::getShape(part);
    dims.insert(dims.begin(), e.number(1));
    parts.push_back(e.reshape(part, dims));
  }
  Values steps;
  Exprs all = graph::getShape(from.stacked.front());
  for (Value part : from.stacked) {
    Exprs dims = graph::getShape(part);
    dims.insert(dims.begin() + 1, e.number(1));
    steps.push_back(e.reshape(part, dims));
  }
  all[0] = graph::simplify(all[0] * static_cast<int64_t>(steps.size()));
  parts.push_back(e.reshape(e.concat(steps, 1), all));
  return e.concat(parts, 0);
}

/// Tensors that are stacked, joined along an axis that they have, or a new one.
static Value joinStacked(const NodeProto &node, Value all, Emitter &e) {
  bool isNew = integer(node, "new_axis", 0) != 0;
  auto axis = axisOf(node, rankOf(all) - !isNew, e);
  if (!all || failed(axis))
    return {};
  auto order = llvm::to_vector(llvm::seq<int64_t>(1, rankOf(all)));
  order.insert(order.begin() + *axis, 0);
  Value moved = e.transpose(all, order);
  if (!moved || isNew)
    return moved;
  Exprs dims = graph::getShape(moved);
  dims[*axis + 1] = graph::simplify(dims[*axis] * dims[*axis + 1]);
  dims.erase(dims.begin() + *axis);
  return e.reshape(moved, dims);
}

LogicalResult
GraphImporter::importOpenSequence(const NodeProto &node,
                                  const std::vector<Binding> &inputs,
                                  Binding &result) {
  StringRef op = node.op_type();
  if (op != "SequenceLength" && op != "ConcatFromSequence" &&
      op != "SequenceAt")
    return emitter.fail("a sequence whose length is open is not supported here",
                        "join it (ConcatFromSequence), or fix the sizes that "
                        "say how long it is with --shape");
  if (op == "SequenceLength") {
    AffineExpr steps = graph::getShape(inputs[0].stacked.front())[0];
    auto each = static_cast<int64_t>(inputs[0].stacked.size()),
         before = static_cast<int64_t>(inputs[0].sequence->size());
    result.value = emitter.size(graph::simplify(steps * each + before),
                                emitter.getBuilder().getI64Type());
    return llvm::success(bool(result.value));
  }
  Value all = stackAll(inputs[0], emitter);
  if (!all)
    return llvm::failure();
  if (op == "ConcatFromSequence") {
    result.value = joinStacked(node, all, emitter);
  } else {
    Value place = emitter.reshape(inputs[1].value, {});
    if (failed(checkPositions(all, place, 0, emitter)))
      return llvm::failure();
    result.value = emitter.op<graph::GatherOp>(
        {all, place}, emitter.attr("axis", int64_t(0)));
  }
  return llvm::success(bool(result.value));
}

LogicalResult GraphImporter::importOptional(const NodeProto &node,
                                            const std::vector<Binding> &inputs,
                                            std::vector<Binding> &results) {
  bool has = !inputs.empty() && !inputs[0].absent;
  if (node.op_type() == "OptionalHasElement") {
    results[0].value =
        emitter.scalar(int64_t(has), emitter.getBuilder().getI1Type());
    return llvm::success(bool(results[0].value));
  }
  if (has)
    results[0] = inputs[0];
  else if (node.op_type() == "Optional")
    results[0].absent = true;
  else
    return emitter.fail("the optional value has no element");
  return llvm::success();
}

LogicalResult GraphImporter::importSequence(const NodeProto &node,
                                            const std::vector<Binding> &inputs,
                                            std::vector<Binding> &results) {
  StringRef op = node.op_type();
  Binding &result = results[0];
  auto valueOf = [&](size_t i) {
    return i < inputs.size() ? inputs[i].value : Value();
  };
  if (op == "SequenceEmpty" || op == "SequenceConstruct" ||
      op == "SplitToSequence") {
    Sequence list;
    if (op == "SequenceConstruct")
      for (const Binding &input : inputs)
        list.push_back(input.value);
    if (op == "SplitToSequence" &&
        isSplitOpen(node, valueOf(0), valueOf(1), emitter)) {
      result.stacked = {splitSingly(node, valueOf(0), valueOf(1), emitter)};
      if (!result.stacked.front())
        return llvm::failure();
    } else if (op == "SplitToSequence" &&
               failed(
                   splitTensor(node, valueOf(0), valueOf(1), list, emitter))) {
      return llvm::failure();
    }
    result.element = op == "SequenceEmpty"
                         ? elementType(int(integer(node, "dtype",
                                                   ::onnx::TensorProto::FLOAT)),
                                       emitter.getContext())
                         : elementOf(valueOf(0));
    if (!result.element)
      return emitter.fail("attribute 'dtype' names a type that is not "
                          "supported",
                          elementTypeRemedy);
    result.sequence = std::move(list);
    return llvm::success();
  }
  if (!inputs[0].stacked.empty())
    return importOpenSequence(node, inputs, result);
  bool adds = op == "SequenceInsert" && !valueOf(2);
  if (inputs[0].growsAs && !adds)
    return emitter.fail("of a sequence that the steps of a loop make longer, "
                        "nothing is known inside of them",
                        "let each step add to the end of it alone, or fix the "
                        "sizes that say how many steps there are with --shape");
  const Sequence &from = *inputs[0].sequence;
  int64_t length = from.size();
  if (op == "SequenceLength") {
    result.value = emitter.scalar(length, emitter.getBuilder().getI64Type());
  } else if (op == "ConcatFromSequence") {
    return joinTensors(node, from, result.value, emitter);
  } else if (op == "SequenceAt" && valueOf(1) && isAlike(from) &&
             !emitter.evaluate(valueOf(1)).constants()) {
    result.value = chooseTensor(from, valueOf(1), emitter);
  } else if (op == "SequenceAt") {
    auto place = placeIn(valueOf(1), length, "of", emitter);
    if (failed(place))
      return llvm::failure();
    result.value = from[*place];
  } else {
    // SequenceInsert and SequenceErase; without a place it is the end.
    bool inserts = op == "SequenceInsert";
    Value given = valueOf(inserts ? 2 : 1);
    if (!inserts && length == 0)
      return emitter.fail("there is nothing to take from an empty sequence");
    llvm::FailureOr<size_t> place = inserts ? length : length - 1;
    // Behind the last one is a place, but counting from the end starts at it.
    if (auto known = given ? emitter.evaluate(given).constants() : std::nullopt;
        given &&
        !(inserts && known && known->size() == 1 && known->front() == length))
      place = placeIn(given, length, "of", emitter);
    if (failed(place) || failed(emitter.writeOut(1)))
      return llvm::failure();
    result.element = inputs[0].element;
    result.growsAs = inputs[0].growsAs;
    result.sequence = from;
    if (inserts)
      result.sequence->insert(result.sequence->begin() + *place, valueOf(1));
    else
      result.sequence->erase(result.sequence->begin() + *place);
    return llvm::success();
  }
  return llvm::success(bool(result.value));
}
