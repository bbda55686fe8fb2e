// Lists of tensors, by which recurrent layers collect their steps. A list is a
// value: what sets an element makes a new one.
#include "frontends/tensorflow/ops/List.h"
#include "frontends/common/builders/Slice.h"
#include "frontends/tensorflow/Remedy.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::LogicalResult;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

LogicalResult charonia::frontend::tensorflow::yieldList(Node &n,
                                                        TensorList list) {
  Item item;
  item.list = std::make_shared<TensorList>(std::move(list));
  return n.yieldItem(std::move(item));
}
static const TensorList *listOf(Node &n, Emitter &e, unsigned count) {
  if (const OpenList *open = openListOf(n, 0)) {
    std::string size = e.getSymbols().toString(open->count);
    e.fail("does not take a list of size " + size + ", which is open",
           fixSize(n.getModel(), size));
    return nullptr;
  }
  if (n.numInputs() != count || !n.item(0).list) {
    e.fail("is not given a list of tensors", "export the model again");
    return nullptr;
  }
  return n.item(0).list.get();
}
llvm::FailureOr<int64_t>
charonia::frontend::tensorflow::countOf(Node &n, Emitter &e, unsigned i) {
  if (!n.has(i))
    return n.constantInteger(i);
  auto known = e.evaluate(n.input(i));
  bool isOpen = known && known.elements->size() == 1 &&
                known.elements->front() && !known.constants();
  if (!isOpen)
    return n.constantInteger(i);
  std::string size = e.getSymbols().toString(known.elements->front());
  return e.fail("makes a list of size " + size + ", which is open",
                fixSize(n.getModel(), size));
}
llvm::FailureOr<int64_t>
charonia::frontend::tensorflow::positionOf(Node &n, Emitter &e,
                                           const TensorList &list) {
  auto position = n.constantInteger(1);
  if (failed(position))
    return llvm::failure();
  if (*position < 0 || *position >= list.size())
    return e.fail("takes element " + Twine(*position) + " of a list of " +
                  Twine(list.size()));
  return *position;
}

/// Operand 1 elements that are not set.
static LogicalResult reserve(Node &n, Emitter &e) {
  if (n.numInputs() != 2)
    return e.fail("has no number of elements", "export the model again");
  if (AffineExpr open = openCountOf(n, e, 1))
    return yieldOpenList(n, {open, {}, {}, {}, {}});
  auto count = countOf(n, e, 1);
  if (failed(count))
    return llvm::failure();
  if (*count < 0 || *count > maxElements)
    return e.fail("reserves a list of " + Twine(*count) + " tensors; up to " +
                      Twine(maxElements) + " are supported",
                  "fix the length of the sequence with --shape");
  return yieldList(n, TensorList(*count));
}

static LogicalResult fromTensor(Node &n, Emitter &e) {
  if (n.numInputs() < 1 || failed(n.needsRank(0, 1, 32)))
    return e.fail("is not given a tensor", "export the model again");
  Exprs dims = graph::getShape(n.input(0));
  auto count = graph::constantOf(dims[0]);
  std::string size = e.getSymbols().toString(dims[0]);
  if (!count)
    return yieldOpenList(n, {dims[0], n.input(0), {}, {}, {}});
  if (*count > maxElements)
    return e.fail("makes a list of " + size + " tensors; up to " +
                      Twine(maxElements) + " are supported",
                  "export the model for shorter sequences");
  if (failed(e.writeOut(*count)))
    return llvm::failure();
  TensorList elements(*count);
  dims.erase(dims.begin());
  for (int64_t i = 0; i < *count; ++i)
    elements = elements.with(
        i,
        e.reshape(sliceAlong(n.input(0), 0, {e.number(i), e.number(1), 1}, e),
                  dims));
  return yieldList(n, std::move(elements));
}

/// Operand `shape`, if it says all sizes of an element.
static std::optional<Exprs> elementShape(Node &n, unsigned shape, Emitter &e) {
  graph::SymbolicTensor dims =
      n.has(shape) ? e.evaluate(n.input(shape)) : graph::SymbolicTensor();
  if (!dims || !llvm::all_of(*dims.elements, [](AffineExpr size) {
        auto known = size ? graph::constantOf(size) : std::nullopt;
        return size && (!known || *known >= 0);
      }))
    return std::nullopt;
  return Exprs(dims.elements->begin(), dims.elements->end());
}

/// What an empty list is as one tensor, whose elements' shape is operand
/// `shape`.
static Value nothing(Node &n, unsigned shape, Emitter &e) {
  mlir::Type element = n.type("element_dtype", 1);
  auto dims = elementShape(n, shape, e);
  if (!element || !dims)
    return e.fail("stacks an empty list, whose shape is not known",
                  "give the list its element_shape");
  dims->insert(dims->begin(), e.number(0));
  return e.broadcast(e.scalar(int64_t(0), element), *dims);
}

/// An element, or the zeros that it is until it is set: of the shape that
/// operand `shape` has where all of it is known, else of the list's others.
static Value elementOr0(Node &n, const TensorList &list, int64_t i,
                        unsigned shape, Emitter &e) {
  if (Value element = list[i])
    return element;
  if (list.carriedAs)
    return e.fail("reads element " + Twine(i) +
                      " of a list, which is not set "
                      "in this step of a loop, and may be in one before",
                  "fix the sizes that say how many steps there are with "
                  "--shape");
  auto dims = elementShape(n, shape, e);
  for (int64_t other = 0; !dims && other < list.size(); ++other)
    if (Value like = list[other])
      return e.broadcast(e.scalar(int64_t(0), elementOf(like)),
                         graph::getShape(like));
  mlir::Type element = n.type("element_dtype", 1);
  if (!element)
    return Value();
  if (!dims)
    return e.fail("reads element " + Twine(i) +
                      " of a list, of which none is set and whose shape is "
                      "not known",
                  "give the list its element_shape");
  return e.broadcast(e.scalar(int64_t(0), element), *dims);
}

/// The element that operand 1 names, of elements of one shape.
static LogicalResult getRow(Node &n, const TensorList &list, Emitter &e) {
  if (failed(e.writeOut(list.size())))
    return llvm::failure();
  Values rows;
  for (int64_t i = 0; i < list.size(); ++i) {
    Value row = elementOr0(n, list, i, 2, e);
    if (!row)
      return llvm::failure();
    Exprs dims = graph::getShape(row);
    dims.insert(dims.begin(), e.number(1));
    rows.push_back(e.reshape(row, dims));
  }
  return n.yield(e.op<graph::GatherOp>({e.concat(rows, 0), n.input(1)},
                                       e.attr("axis", int64_t(0))));
}

static LogicalResult getItem(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 0); open && n.has(1))
    return getOpenItem(n, *open, e);
  if (n.numInputs() < 2 || !n.item(0).list)
    return e.fail("is not given a list of tensors", "export the model again");
  const TensorList &list = *n.item(0).list;
  // Elements of one shape are a table, of which data may name a row.
  if (n.has(1) && rankOf(n.input(1)) == 0 && list.size() > 0 &&
      !e.evaluate(n.input(1)))
    return getRow(n, list, e);
  auto position = positionOf(n, e, list);
  if (failed(position))
    return llvm::failure();
  return n.yield(elementOr0(n, list, *position, 2, e));
}

/// The list without its last element, and that.
static LogicalResult popBack(Node &n, Emitter &e) {
  const TensorList *list = listOf(n, e, 2);
  if (!list)
    return llvm::failure();
  if (list->size() == 0)
    return e.fail("takes the last element of an empty list");
  Value last = elementOr0(n, *list, list->size() - 1, 1, e);
  TensorList rest(list->size() - 1);
  for (int64_t i = 0; i < rest.size(); ++i)
    if ((*list)[i])
      rest = rest.with(i, (*list)[i]);
  return llvm::success(last && succeeded(yieldList(n, std::move(rest))) &&
                       succeeded(n.yieldItem(last)));
}

/// With operand 1 elements, of which new ones are not set.
static LogicalResult resize(Node &n, Emitter &e) {
  const TensorList *list = listOf(n, e, 2);
  if (!list)
    return llvm::failure();
  auto count = countOf(n, e, 1);
  if (failed(count))
    return llvm::failure();
  if (*count < 0 || *count > maxElements)
    return e.fail("makes a list of " + Twine(*count) + " tensors; up to " +
                  Twine(maxElements) + " are supported");
  TensorList elements(*count);
  for (int64_t i = 0; i < std::min(*count, list->size()); ++i)
    if ((*list)[i])
      elements = elements.with(i, (*list)[i]);
  return yieldList(n, std::move(elements));
}

static LogicalResult setItem(Node &n, Emitter &e) {
  if (openListOf(n, 0) && n.has(1) && n.has(2))
    return setOpenItem(n, 0, e);
  const TensorList *list = listOf(n, e, 3);
  if (!list)
    return llvm::failure();
  if (!n.input(2))
    return e.fail("sets what is no tensor");
  bool grows = n.flag("resize_if_index_out_of_bounds");
  auto position = grows ? n.constantInteger(1) : positionOf(n, e, *list);
  if (failed(position))
    return llvm::failure();
  if (*position < 0 || *position >= maxElements)
    return e.fail("sets element " + Twine(*position) + " of a list of " +
                  Twine(list->size()) + "; up to " + Twine(maxElements) +
                  " are supported");
  return yieldList(n, list->with(*position, n.input(2)));
}

static LogicalResult pushBack(Node &n, Emitter &e) {
  const TensorList *list = listOf(n, e, 2);
  if (!list)
    return llvm::failure();
  if (!n.input(1) || list->size() >= maxElements)
    return e.fail("adds what is no tensor, or more than " + Twine(maxElements));
  return yieldList(n, list->with(list->size(), n.input(1)));
}
static LogicalResult empty(Node &n, Emitter &) {
  return yieldList(n, TensorList());
}

static LogicalResult length(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 0))
    return yieldLength(n, *open, e);
  const TensorList *list = listOf(n, e, 1);
  return list ? n.yield(e.scalar(list->size(), e.getBuilder().getI32Type()))
              : llvm::failure();
}

/// `shape` is the operand that elements' shape is.
static LogicalResult stackAll(Node &n, const TensorList &list, unsigned shape,
                              Emitter &e) {
  if (failed(e.writeOut(list.size())))
    return llvm::failure();
  Values parts;
  for (int64_t i = 0; i < list.size(); ++i) {
    Value element = elementOr0(n, list, i, shape, e);
    if (!element)
      return llvm::failure();
    Exprs dims = graph::getShape(element);
    dims.insert(dims.begin(), e.number(1));
    parts.push_back(e.reshape(element, dims));
  }
  return n.yield(parts.empty() ? nothing(n, shape, e) : e.concat(parts, 0));
}

static LogicalResult stack(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 0))
    return stackOpen(n, *open, elementShape(n, 1, e), e);
  if (n.numInputs() < 1 || !n.item(0).list)
    return e.fail("is not given a list of tensors", "export the model again");
  return stackAll(n, *n.item(0).list, 1, e);
}

/// All elements one behind the other, and how many rows each has.
static LogicalResult concatList(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 0))
    return concatOpen(n, *open, e);
  if (n.numInputs() < 1 || !n.item(0).list)
    return e.fail("is not given a list of tensors", "export the model again");
  const TensorList &list = *n.item(0).list;
  if (failed(e.writeOut(list.size())))
    return llvm::failure();
  Values parts;
  Exprs lengths;
  for (int64_t i = 0; i < list.size(); ++i) {
    if (!list[i] || rankOf(list[i]) < 1)
      return e.fail("joins element " + Twine(i) +
                    " of a list, which is not set or has no rows");
    parts.push_back(list[i]);
    lengths.push_back(graph::getShape(list[i])[0]);
  }
  if (parts.empty())
    return e.fail("joins the elements of an empty list");
  return n.yield({e.concat(parts, 0),
                  e.sizes(lengths, list.size(), e.getBuilder().getI64Type())});
}

/// A list of as many rows of operand 0 each as operand 2 lists.
static LogicalResult splitList(Node &n, Emitter &e) {
  if (n.numInputs() != 3 || failed(n.needsRank(0, 1, 32)) ||
      failed(n.needsRank(2, 1, 1)))
    return e.fail("is not given a tensor and lengths",
                  "export the model again");
  auto lengths = n.constants(2);
  AffineExpr rows = graph::getShape(n.input(0))[0];
  int64_t total = 0;
  if (failed(lengths) ||
      failed(e.writeOut(static_cast<int64_t>(lengths->size()))))
    return llvm::failure();
  for (int64_t length : *lengths) {
    if (length < 0 || length > maxDimension - total ||
        static_cast<int64_t>(lengths->size()) > maxElements)
      return e.fail("makes an element of " + Twine(length) + " rows, or over " +
                    Twine(maxElements) + " elements");
    total += length;
  }
  if (!e.agree(rows, e.number(total), "splits all of it"))
    return e.fail("lengths of " + Twine(total) + " in all do not make up " +
                  e.describe(n.input(0).getType()));
  TensorList elements(static_cast<int64_t>(lengths->size()));
  AffineExpr start = e.number(0);
  for (auto [i, length] : llvm::enumerate(*lengths)) {
    elements = elements.with(
        static_cast<int64_t>(i),
        sliceAlong(n.input(0), 0, {start, e.number(length), 1}, e));
    start = graph::simplify(start + length);
  }
  return yieldList(n, std::move(elements));
}

LogicalResult charonia::frontend::tensorflow::scatterRows(Node &n, Emitter &e,
                                                          TensorList elements,
                                                          unsigned tensor,
                                                          unsigned places) {
  if (failed(n.needsRank(tensor, 1, 32)) || failed(n.needsRank(places, 1, 1)))
    return llvm::failure();
  auto positions = n.constants(places);
  if (failed(positions))
    return llvm::failure();
  Exprs dims = graph::getShape(n.input(tensor));
  if (dims[0] != e.number(static_cast<int64_t>(positions->size())))
    return e.fail("gives " + Twine(positions->size()) + " positions to " +
                  e.describe(n.input(tensor).getType()));
  if (failed(e.writeOut(static_cast<int64_t>(positions->size()))))
    return llvm::failure();
  dims.erase(dims.begin());
  for (auto [i, position] : llvm::enumerate(*positions)) {
    if (position < 0 || position >= maxElements)
      return e.fail("sets element " + Twine(position) + " of a list of " +
                    Twine(elements.size()));
    Value row =
        sliceAlong(n.input(tensor), 0,
                   {e.number(static_cast<int64_t>(i)), e.number(1), 1}, e);
    elements = elements.with(position, e.reshape(row, dims));
  }
  return yieldList(n, std::move(elements));
}
static LogicalResult scatterList(Node &n, Emitter &e) {
  if (AffineExpr open = openCountOf(n, e, 3))
    return scatterOpen(n, {open, {}, {}, {}, {}}, 0, 1, e);
  int64_t count = 0;
  if (n.has(3)) {
    // Without one (-1) the list ends at the last position.
    auto given = n.constantInteger(3);
    if (failed(given))
      return llvm::failure();
    count = std::max<int64_t>(*given, 0);
    if (count > maxElements)
      return e.fail("makes a list of " + Twine(count) + " tensors; up to " +
                    Twine(maxElements) + " are supported");
  }
  return scatterRows(n, e, TensorList(count), 0, 1);
}
static LogicalResult scatterIntoList(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 0); open && n.has(1))
    return scatterOpen(n, *open, 1, 2, e);
  const TensorList *list = listOf(n, e, 3);
  return list ? scatterRows(n, e, *list, 1, 2) : llvm::failure();
}

LogicalResult
charonia::frontend::tensorflow::gatherElements(Node &n, Emitter &e,
                                               const TensorList &list) {
  auto positions = n.constants(1);
  if (failed(positions))
    return llvm::failure();
  TensorList elements;
  for (int64_t position : *positions) {
    if (position < 0 || position >= list.size())
      return e.fail("takes element " + Twine(position) + " of a list of " +
                    Twine(list.size()));
    // Of the others' shape, also of those that are not taken.
    Value element = elementOr0(n, list, position, 2, e);
    if (!element)
      return llvm::failure();
    elements = elements.with(elements.size(), element);
  }
  return stackAll(n, elements, 2, e);
}
static LogicalResult gatherList(Node &n, Emitter &e) {
  if (const OpenList *open = openListOf(n, 0); open && n.has(1))
    return gatherOpen(n, *open, elementShape(n, 2, e), e);
  const TensorList *list = listOf(n, e, 3);
  return list ? gatherElements(n, e, *list) : llvm::failure();
}

llvm::ArrayRef<Row> charonia::frontend::tensorflow::listRows() {
  static const Row rows[] = {
      {"TensorListReserve", reserve},
      {"TensorListFromTensor", fromTensor},
      {"TensorListGetItem", getItem},
      {"TensorListSetItem", setItem},
      {"TensorListPushBack", pushBack},
      {"TensorListPopBack", popBack, "output_handle tensor"},
      {"TensorListResize", resize},
      {"EmptyTensorList", empty},
      {"TensorListLength", length},
      {"TensorListConcatV2", concatList, "tensor lengths"},
      {"TensorListConcat", concatList, "tensor lengths"},
      {"TensorListScatterV2", scatterList},
      {"TensorListScatter", scatterList},
      {"TensorListScatterIntoExistingList", scatterIntoList},
      {"TensorListSplit", splitList},
      {"TensorListStack", stack},
      {"TensorListGather", gatherList},
  };
  return rows;
}
