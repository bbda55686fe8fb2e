// Constants, variables, and results that follow from shapes.
#include "frontends/common/Diagnostic.h"
#include "frontends/common/builders/Gather.h"
#include "frontends/common/builders/Sequence.h"
#include "frontends/common/builders/Shape.h"
#include "frontends/tensorflow/Node.h"
#include "frontends/tensorflow/Stated.h"
#include "frontends/tensorflow/ops/Dynamic.h"
#include "frontends/tensorflow/ops/Num.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

/// Whether a tensor's message lists at most one value, for all of its elements.
static bool isSplat(const proto::Tensor &tensor) {
  return tensor.content().empty() && tensor.floats_size() <= 1 &&
         tensor.doubles_size() <= 1 && tensor.ints_size() <= 1 &&
         tensor.longs_size() <= 1 && tensor.bools_size() <= 1 &&
         tensor.halves_size() <= 1 && tensor.unsigned_ints_size() <= 1 &&
         tensor.unsigned_longs_size() <= 1;
}

/// Complex numbers, which are pairs in the file.
static LogicalResult complexConstant(Node &n, Emitter &e,
                                     const proto::Tensor &tensor) {
  constexpr int complex64 = 8, float32 = 1, float64 = 2;
  auto pairs = std::make_shared<proto::Tensor>();
  pairs->set_dtype(tensor.dtype() == complex64 ? float32 : float64);
  pairs->set_content(tensor.content());
  *pairs->mutable_floats() = tensor.complex_floats();
  *pairs->mutable_doubles() = tensor.complex_doubles();
  Exprs dims;
  for (const auto &dim : tensor.shape().dims())
    dims.push_back(e.number(dim.size()));
  // One, or zero, stands for all elements.
  bool isSingle = tensor.content().empty() && pairs->floats_size() <= 2 &&
                  pairs->doubles_size() <= 2;
  if (!isSingle)
    *pairs->mutable_shape() = tensor.shape();
  pairs->mutable_shape()->add_dims()->set_size(2);
  Problem problem;
  auto data = readTensor(*pairs, pairs, e.getContext(), problem);
  if (!data)
    return e.fail("its value " + problem.what, problem.remedy);
  bool isWhole = tensor.content().size() || isSingle ||
                 data->type.getNumElements() ==
                     pairs->floats_size() + pairs->doubles_size();
  if (!isWhole)
    return e.fail("its value lists some complex numbers and repeats the last, "
                  "which is not supported",
                  "store it in full");
  Complex z = splitComplex(materialize(*data, n.name(), e), e);
  return n.yieldComplex(isSingle ? spreadComplex(z, dims, e) : z);
}

static LogicalResult constant(Node &n, Emitter &e) {
  auto *attribute = n.find("value");
  if (!attribute || !attribute->has_tensor())
    return e.fail("has no value", "export the model again");
  const proto::Tensor &tensor = attribute->tensor();
  if (auto *type = n.find("dtype"); type && type->type() != tensor.dtype())
    return e.fail("its value is of " + dtypeName(tensor.dtype()) +
                      ", but the node says " + dtypeName(type->type()),
                  "the file is damaged: export the model again");
  Problem problem;
  // What repeats one value takes no room, however large it is.
  constexpr int64_t fewElements = 1024;
  proto::Tensor single;
  Exprs dims;
  llvm::SmallVector<int64_t> sizes;
  int64_t elements = 1;
  for (const auto &dim : tensor.shape().dims()) {
    dims.push_back(e.number(dim.size()));
    sizes.push_back(dim.size());
    if (dim.size() < 0 || dim.size() > maxDimension ||
        llvm::MulOverflow(elements, dim.size(), elements))
      return e.fail("has a shape that is absurd", "export the model again");
  }
  if (dtypeName(tensor.dtype()).starts_with("complex"))
    return complexConstant(n, e, tensor);
  if (mlir::Type element = elementType(tensor.dtype(), e.getContext()))
    if (auto other = n.getModel().replace(
            n.message(), mlir::RankedTensorType::get(sizes, element)))
      return n.yield(materialize(*other, n.name(), e));
  bool spread = elements > fewElements && isSplat(tensor);
  if (spread) {
    single = tensor;
    single.clear_shape();
  }
  auto data = readTensor(spread ? single : tensor,
                         spread ? nullptr : n.getModel().owner(),
                         e.getContext(), problem);
  if (!data)
    return e.fail("its value " + problem.what, problem.remedy);
  Value value = materialize(*data, n.name(), e);
  return n.yield(spread ? e.broadcast(value, dims) : value);
}

/// What a node holds.
static Item variableOf(Node &n) {
  const Stored *stored = n.getModel().storedOf(n.message());
  Item item;
  item.variable = std::make_shared<Variable>(
      stored ? Variable{n.name(), stored->key, stored->part, &n.message()}
             : Variable{n.name(), {}, {}, &n.message()});
  return item;
}
static LogicalResult variable(Node &n, Emitter &) {
  return n.yieldItem(variableOf(n));
}

/// A part of a tensor as TensorFlow writes it: the tensor's sizes, and of each
/// dimension first element and length, or - for all of it ("7 5 0,3:-").
static Value cutPart(Value whole, llvm::StringRef part, Emitter &e) {
  auto fail = [&] {
    return e.fail("reads part '" + printable(part.str()) + "' of " +
                      e.describe(whole.getType()) + ", which it does not have",
                  "the file is damaged: export the model again");
  };
  llvm::SmallVector<llvm::StringRef> words, ranges;
  part.split(words, ' ');
  words.pop_back_val().split(ranges, ':');
  Exprs dims = graph::getShape(whole), starts;
  if (words.size() != dims.size() || ranges.size() != dims.size())
    return fail();
  for (auto [word, range, dim] : llvm::zip(words, ranges, dims)) {
    int64_t size = 0, first = 0, length = 0;
    if (word.getAsInteger(10, size) || dim != e.number(size))
      return fail();
    auto [left, right] = range.split(',');
    if (range == "-")
      length = size;
    else if (left.getAsInteger(10, first) || right.getAsInteger(10, length))
      return fail();
    if (first < 0 || length < 0 || first > size || length > size - first)
      return fail();
    starts.push_back(e.number(first));
    dim = e.number(length);
  }
  return e.slice(whole, starts, llvm::SmallVector<int64_t>(dims.size(), 1),
                 dims);
}

/// The tensor of a variable; null and a failure where nothing holds it.
static Value loadWhole(const Variable &variable, Emitter &e, Model &model) {
  std::string shown = "variable '" + printable(variable.node) + "'";
  if (variable.key.empty() || !model.bundle())
    return e.fail("nothing in the model says where " + shown + " is stored",
                  "export the model with its variables: model.export(folder) "
                  "or tf.saved_model.save");
  if (Value known = model.loaded(variable.key))
    return known;
  // What is replaced need not be sound, nor be there.
  Problem problem;
  std::optional<TensorData> data;
  if (auto type = model.bundle()->typeOf(variable.key, e.getContext()))
    data = model.replace(variable.key, type);
  if (!data)
    data = model.bundle()->load(variable.key, e.getContext(), problem);
  if (!data)
    return e.fail(problem.what, problem.remedy);
  // Variables are read wherever they are needed first, and used everywhere.
  Value value = materialize(*data, variable.node, e);
  model.setLoaded(variable.key, value);
  return value;
}
static Value load(const Item &item, Emitter &e, Model &model) {
  if (!item.variable)
    return e.fail("reads what is no variable", "export the model again");
  const Variable &variable = *item.variable;
  Value value = loadWhole(variable, e, model);
  if (value && !variable.part.empty())
    value = cutPart(value, variable.part, e);
  if (!value || !variable.holder)
    return value;
  const auto &attributes = variable.holder->attributes();
  Stated stated;
  if (auto it = attributes.find("dtype"); it != attributes.end())
    stated.dtype = it->second.type();
  if (auto it = attributes.find("shape");
      it != attributes.end() && it->second.has_shape())
    stated.shape = &it->second.shape();
  std::string other = contradiction(value, stated, "the node that holds it", e);
  return other.empty()
             ? value
             : e.fail("variable '" + printable(variable.node) + "' is " + other,
                      "the file is damaged: export the model again");
}
static LogicalResult readVariable(Node &n, Emitter &e) {
  return n.numInputs() == 1
             ? n.yield(load(n.item(0), e, n.getModel()))
             : e.fail("has no variable", "export the model again");
}
static LogicalResult gatherVariable(Node &n, Emitter &e) {
  if (n.numInputs() != 2 || !n.input(1) || n.integer("batch_dims", 0) != 0)
    return e.fail("is not supported but for rows of a variable");
  Value table = load(n.item(0), e, n.getModel());
  if (!table || failed(checkPositions(table, n.input(1), 0, e)))
    return llvm::failure();
  return n.yield(e.op<graph::GatherOp>({table, indicesFromStart(n.input(1), e)},
                                       e.attr("axis", int64_t(0))));
}
static LogicalResult gatherNdVariable(Node &n, Emitter &e) {
  if (n.numInputs() != 2 || !n.input(1))
    return e.fail("has no variable and indices", "export the model again");
  Value table = load(n.item(0), e, n.getModel());
  return n.yield(
      e.op<graph::GatherNDOp>({table, indicesFromStart(n.input(1), e)},
                              e.attr("batch_dims", int64_t(0))));
}
static Value shapeOf(Value value, mlir::Type element, Emitter &e) {
  Exprs dims = graph::getShape(value);
  return e.sizes(dims, static_cast<int64_t>(dims.size()), element);
}
static LogicalResult variableShape(Node &n, Emitter &e) {
  mlir::Type element = n.sizeType("out_type");
  Value value = n.numInputs() == 1 ? load(n.item(0), e, n.getModel()) : Value();
  return element && value ? n.yield(shapeOf(value, element, e))
                          : e.fail("has no variable", "export the model again");
}
/// What is stored is initialized.
static LogicalResult isInitialized(Node &n, Emitter &e) {
  return n.yield(e.scalar(int64_t(1), e.getBuilder().getI1Type()));
}
/// A variable of TF1 is read by being used.
static LogicalResult legacyVariable(Node &n, Emitter &e) {
  return n.yield(load(variableOf(n), e, n.getModel()));
}

/// Passes on what it is given: a tensor, a variable or a list each.
static LogicalResult identity(Node &n, Emitter &e) {
  if (!n.numInputs())
    return e.fail("has no input", "export the model again");
  for (unsigned i = 0; i < n.numInputs(); ++i)
    if (failed(n.yieldItem(n.item(i))))
      return llvm::failure();
  return llvm::success();
}
static LogicalResult firstOnly(Node &n, Emitter &e) {
  return n.numInputs() ? n.yieldItem(n.item(0))
                       : e.fail("has no input", "export the model again");
}

/// The tensor, whose sizes are those that the attribute has.
static LogicalResult ensureShape(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  auto *attribute = n.find("shape");
  if (!attribute || !attribute->has_shape() ||
      attribute->shape().unknown_rank())
    return n.yieldItem(n.item(0));
  const proto::Shape &wanted = attribute->shape();
  if (failed(n.needsRank(0, wanted.dims_size(), wanted.dims_size())))
    return llvm::failure();
  Exprs dims = graph::getShape(n.input(0));
  for (auto [size, dim] : llvm::zip(wanted.dims(), dims))
    if (size.size() != -1 &&
        !e.agree(dim, e.number(size.size()), "has this size"))
      return e.fail("size " + e.getSymbols().toString(dim) + " is not the " +
                        Twine(size.size()) + " that the model says",
                    "give that size with --shape");
  return n.yieldItem(n.item(0));
}

/// A table, which is nothing to those that do not look something up in it.
static LogicalResult table(Node &n, Emitter &) { return n.yieldItem(Item()); }

static LogicalResult placeholder(Node &n, Emitter &e) {
  return e.fail("is an input that the signature, or --inputs, does not have",
                "export the model with all of its inputs, or name all with "
                "--inputs");
}

// Shapes.

static LogicalResult shape(Node &n, Emitter &e) {
  mlir::Type element = n.sizeType("out_type");
  if (!element || failed(n.needsTensors(1, Node::manyInputs)))
    return llvm::failure();
  Values shapes;
  for (Value value : n.allInputs())
    shapes.push_back(shapeOf(value, element, e));
  return n.yield(shapes);
}
static LogicalResult size(Node &n, Emitter &e) {
  mlir::Type element = n.sizeType("out_type");
  if (!element || failed(n.needsTensors(1, 1)))
    return llvm::failure();
  AffineExpr count = productOfSizes(graph::getShape(n.input(0)), e);
  return count ? n.yield(e.sizes({count}, {}, element)) : llvm::failure();
}
static LogicalResult rank(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  return n.yield(e.scalar(rankOf(n.input(0)), e.getBuilder().getI32Type()));
}

static LogicalResult fill(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 1, 1)) ||
      failed(n.needsRank(1, 0, 0)))
    return llvm::failure();
  auto dims = n.known(0);
  if (failed(dims) || !e.type(*dims, elementOf(n.input(1))))
    return llvm::failure();
  return n.yield(e.broadcast(n.input(1), *dims));
}
template <int64_t value> static LogicalResult filled(Node &n, Emitter &e) {
  if (failed(n.needsTensors(1, 1)))
    return llvm::failure();
  return n.yield(e.broadcast(e.scalar(value, elementOf(n.input(0))),
                             graph::getShape(n.input(0))));
}

static LogicalResult range(Node &n, Emitter &e) {
  return failed(n.needsTensors(3, 3)) ? llvm::failure()
                                      : n.yield(buildRange(n, true, e));
}

/// As many numbers as operand 2 says, from the first operand to the second.
static LogicalResult linSpace(Node &n, Emitter &e) {
  if (failed(n.needsTensors(3, 3)))
    return llvm::failure();
  for (unsigned i : {0, 1, 2})
    if (failed(n.needsRank(i, 0, 0)))
      return llvm::failure();
  auto count = n.known(2);
  if (failed(count) || !e.type(*count, elementOf(n.input(0))))
    return llvm::failure();
  mlir::Type type = elementOf(n.input(0));
  Num start = {n.input(0), &e}, stop = {n.input(1), &e};
  Num last = start.of(e.size(graph::simplify(count->front() - 1), type));
  Num step = countAlong(0, 1, count->front(), type, e);
  // Of a single one the first.
  Num value = start + (stop - start) / max(last, 1) * step;
  Value isEnd =
      e.op<graph::AndOp>({compare(graph::Predicate::eq, step, last),
                          compare(graph::Predicate::gt, step, step.of(0.0))});
  return n.yield(select(isEnd, stop, value).value);
}

/// The shape that two shapes broadcast to.
static LogicalResult broadcastArgs(Node &n, Emitter &e) {
  if (failed(n.needsTensors(2, 2)) || failed(n.needsRank(0, 1, 1)) ||
      failed(n.needsRank(1, 1, 1)))
    return llvm::failure();
  auto a = n.known(0), b = n.known(1);
  mlir::Type element = n.sizeType("T");
  if (failed(a) || failed(b) || !element)
    return llvm::failure();
  auto dims = e.join(*a, *b);
  if (!dims)
    return e.fail(e.describe(*a) + " and " + e.describe(*b) +
                  " do not broadcast");
  return n.yield(e.sizes(*dims, static_cast<int64_t>(dims->size()), element));
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::sourceRows() {
  static const Row rows[] = {
      {"Const", constant},
      {"Placeholder", placeholder, "output"},
      {"PlaceholderWithDefault", firstOnly},
      {.op = "VarHandleOp",
       .import = variable,
       .variable = Row::OfVariable::Handle},
      {"VariableShape", variableShape},
      {"VarIsInitializedOp", isInitialized},
      {"IsVariableInitialized", isInitialized},
      {"HashTableV2", table},
      {"MutableHashTableV2", table},
      {.op = "ReadVariableOp",
       .import = readVariable,
       .variable = Row::OfVariable::Reads},
      {.op = "ResourceGather",
       .import = gatherVariable,
       .byRows = 1,
       .variable = Row::OfVariable::Reads},
      {.op = "ResourceGatherNd",
       .import = gatherNdVariable,
       .variable = Row::OfVariable::Reads},
      {.op = "Variable",
       .import = legacyVariable,
       .variable = Row::OfVariable::Value},
      {.op = "VariableV2",
       .import = legacyVariable,
       .variable = Row::OfVariable::Value},
      {.op = "Identity",
       .import = identity,
       .takesBlocks = true,
       .variable = Row::OfVariable::PassesOn},
      {.op = "IdentityN", .import = identity, .counted = "T"},
      {.op = "Enter",
       .import = firstOnly,
       .variable = Row::OfVariable::PassesOn},
      {.op = "RefEnter",
       .import = firstOnly,
       .variable = Row::OfVariable::PassesOn},
      {"NextIteration", firstOnly},
      {"RefNextIteration", firstOnly},
      {"LoopCond", firstOnly},
      {.op = "RefIdentity",
       .import = firstOnly,
       .variable = Row::OfVariable::PassesOn},
      ofParts({"StopGradient", firstOnly}),
      ofParts({"PreventGradient", firstOnly}),
      ofParts({"Snapshot", firstOnly}),
      ofParts({"EnsureShape", ensureShape}),
      {"CheckNumerics", firstOnly},
      ofShape({"Shape", shape}),
      {.op = "ShapeN",
       .import = shape,
       .complex = Row::OfComplex::Shape,
       .counted = "N"},
      ofShape({"Size", size}),
      ofShape({"Rank", rank}),
      ofParts({"Fill", fill}),
      ofParts({"ZerosLike", filled<0>}),
      {"OnesLike", filled<1>},
      {"Range", range},
      {"LinSpace", linSpace},
      {"BroadcastArgs", broadcastArgs},
  };
  return rows;
}
