// What shares memory in an exported program, what is written to it, and what of
// the program is needed.
#include "frontends/pytorch/ProgramImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using Kind = Argument::Kind;
using llvm::ArrayRef;
using llvm::StringRef;

/// Views of views: deeper chains no program has.
constexpr int maxViewDepth = 256;

// Who shares.

/// Whether the strides are those of row-major order, as far as can be told.
static bool isContiguous(ArrayRef<mlir::AffineExpr> shape,
                         ArrayRef<mlir::AffineExpr> strides, Emitter &e) {
  mlir::AffineExpr expected = e.number(1);
  for (auto [size, stride] : llvm::reverse(llvm::zip_equal(shape, strides))) {
    if (graph::constantOf(size) == 1)
      continue;
    if (graph::simplify(stride - expected) != 0)
      return false;
    expected = graph::simplify(expected * size);
  }
  return true;
}

/// Whether a and b are equal; none where that depends on sizes.
static std::optional<bool> equals(mlir::AffineExpr a, mlir::AffineExpr b,
                                  Emitter &e) {
  mlir::AffineExpr difference = graph::simplify(a - b);
  if (difference == 0)
    return true;
  const Symbols &symbols = e.getSymbols();
  bool differ = !graph::mayBeEqual(a, b) ||
                symbols.isNonNegative(difference - 1) ||
                symbols.isNonNegative(-difference - 1);
  return differ ? std::optional(false) : std::nullopt;
}

/// Whether a tensor of these strides can be seen in another shape without
/// moving elements: each run of dimensions that lie densely becomes others of
/// the same number of elements. None where that depends on sizes.
static std::optional<bool> canView(ArrayRef<mlir::AffineExpr> shape,
                                   ArrayRef<mlir::AffineExpr> strides,
                                   ArrayRef<mlir::AffineExpr> to, Emitter &e) {
  mlir::AffineExpr one = e.number(1), run = one, seen = one, base = one;
  auto next = static_cast<int64_t>(to.size()) - 1;
  if (!strides.empty())
    base = strides.back();
  // Ending a run in front of what may be of one element is right in either
  // case, but not the only way.
  bool isOnlyWay = true;
  auto no = [&] { return isOnlyWay ? std::optional(false) : std::nullopt; };
  for (auto d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
    run = graph::simplify(run * shape[d]);
    if (d > 0) {
      auto isOne = equals(shape[d - 1], one, e);
      auto continues = equals(strides[d - 1], run * base, e);
      if (isOne == true || continues == true)
        continue;
      if (!continues)
        return std::nullopt;
      isOnlyWay &= isOne.has_value();
    }
    while (next >= 0) {
      auto isFull = equals(seen, run, e), isOne = equals(to[next], one, e);
      if (isFull == true && isOne != true) {
        isOnlyWay &= isOne.has_value();
        break;
      }
      // What fills a run is part of it, also where it was full and this is 1.
      if (!isFull && equals(seen * to[next], run, e) != true)
        return std::nullopt;
      seen = graph::simplify(seen * to[next--]);
      auto known = graph::constantOf(seen), whole = graph::constantOf(run);
      if (known && whole && *known > *whole)
        return no();
    }
    auto isFull = equals(seen, run, e);
    if (isFull != true)
      return isFull ? no() : std::nullopt;
    if (d > 0)
      base = strides[d - 1];
    run = seen = one;
  }
  return next < 0 ? std::optional(true) : no();
}

/// Whether a result that may be a view is one; none where one cannot tell.
std::optional<bool> ProgramImporter::isShared(const Node &node,
                                              const TensorMeta *own,
                                              const TensorMeta *base) {
  const Argument *copy = findArgument(node, "copy");
  if (copy && !(copy->kind == Kind::Bool && copy->integer == 0) &&
      !copy->isNone())
    return false;
  if (!own || !base)
    return std::nullopt;
  if (own->dtype != base->dtype)
    return false;
  Exprs shape = shapeOf(*base), to = shapeOf(*own),
        strides = sizes.convert(base->strides),
        after = sizes.convert(own->strides);
  auto isKnown = [](ArrayRef<mlir::AffineExpr> list) {
    return llvm::all_of(list, [](mlir::AffineExpr size) { return bool(size); });
  };
  if (shape.size() != strides.size() || to.size() != after.size() ||
      !isKnown(shape) || !isKnown(to) || !isKnown(strides) || !isKnown(after))
    return std::nullopt;
  if (shape != to)
    return isContiguous(shape, strides, emitter)
               ? true
               : canView(shape, strides, to, emitter);
  std::optional<bool> result = true;
  for (auto [size, a, b] : llvm::zip_equal(shape, strides, after)) {
    if (graph::constantOf(size) == 1)
      continue;
    auto same = equals(a, b, emitter);
    if (same == false && !graph::mayBeEqual(size, emitter.number(1)))
      return false;
    if (same != true)
      result = std::nullopt;
  }
  return result;
}

/// Whether a result is of the shape and type of `self`, and of dimensions; none
/// where that depends on sizes.
static std::optional<bool> staysSized(const TensorMeta &own,
                                      const TensorMeta &base,
                                      ArrayRef<mlir::AffineExpr> to,
                                      ArrayRef<mlir::AffineExpr> shape,
                                      Emitter &e) {
  if (own.dtype != base.dtype || shape.empty() || shape.size() != to.size())
    return false;
  std::optional<bool> result = true;
  for (auto [a, b] : llvm::zip_equal(shape, to)) {
    auto same = a && b ? equals(a, b, e) : std::nullopt;
    if (same == false)
      return false;
    if (!same)
      result = std::nullopt;
  }
  return result;
}

/// The tensor whose memory a result of the node may share: of a list the one in
/// its place; of an operator that is not in the table one of them (findNeeded
/// asks for the others).
static const Argument *sharedArgument(const Node &node, const Target &target,
                                      unsigned result) {
  if (target.isOut)
    return findWritten(node, target, result);
  if (target.row && !target.inPlace && target.row->alias == Alias::No)
    return nullptr;
  const Argument *list = target.row ? findArgument(node, "tensors") : nullptr;
  if (target.row && target.row->alias == Alias::Alone &&
      (!list || list->items.size() != 1))
    return nullptr;
  if (list && list->kind == Kind::List && result < list->items.size() &&
      list->items[result].kind == Kind::Tensor)
    return &list->items[result];
  for (StringRef name : {"self", "input", "A"})
    if (const Argument *argument = findArgument(node, name);
        argument && argument->kind == Kind::Tensor)
      return argument;
  if (target.row)
    return nullptr;
  for (const NamedArgument &input : node.inputs) {
    if (input.value.kind == Kind::Tensor)
      return &input.value;
    for (const Argument &item : input.value.items)
      if (item.kind == Kind::Tensor)
        return &item;
  }
  return nullptr;
}

void ProgramImporter::addAliases(const Node &node) {
  Target target = findTarget(node.target);
  unsigned result = 0;
  for (const Argument &output : node.outputs)
    forEachTensor(output, [&](const std::string &name) {
      unsigned index = result++;
      const Argument *shared = sharedArgument(node, target, index);
      Entry *base = shared ? find(shared->text) : nullptr;
      if (find(name)) {
        if (!builder.hasErrors())
          builder.fail("tensor '" + printable(name) + "' is defined twice",
                       "export the program again");
        return;
      }
      // What is written to in place is the same tensor.
      if (base && (target.isOut || (target.inPlace && index == 0))) {
        names[name] = base;
        return;
      }
      Entry &entry = addEntry(name);
      entry.node = &node;
      entry.result = index;
      if (!base)
        return;
      std::optional<bool> isView = std::nullopt;
      const TensorMeta *own = metaOf(name), *its = metaOf(shared->text);
      Alias alias = target.row ? target.row->alias : Alias::No;
      if (alias == Alias::View)
        isView = true;
      else if (alias == Alias::Maybe)
        isView = isShared(node, own, its);
      else if (alias == Alias::Real && its)
        isView = !isComplex(its->dtype);
      else if (alias == Alias::Sized && own && its)
        isView = staysSized(*own, *its, shapeOf(*own), shapeOf(*its), emitter);
      if (isView == false)
        return;
      entry.base = base;
      entry.isUndecided = !isView;
      entry.depth = base->depth + 1;
      if (entry.depth == maxViewDepth)
        builder.fail("tensor '" + printable(name) + "' is the last of " +
                         std::to_string(maxViewDepth) + " views of views",
                     "export a program with fewer of them, or with "
                     "run_decompositions()");
      base->views.push_back(&entry);
    });
}

void ProgramImporter::findAliases() {
  emitter.begin(emitter.getBuilder().getUnknownLoc());
  for (const Node &node : graph.nodes)
    addAliases(node);
}

ProgramImporter::Entry *ProgramImporter::rootOf(StringRef name) {
  Entry *entry = find(name);
  while (entry && entry->base)
    entry = entry->base;
  return entry;
}

// What is needed.

const Argument *pytorch::findWritten(const Node &node, const Target &target,
                                     unsigned result) {
  const Argument *found = nullptr;
  size_t count = node.outputs.size();
  if (target.inPlace && result == 0)
    found = findArgument(node, "self");
  else if (target.isOut && result < count && count <= node.inputs.size())
    found = &node.inputs[node.inputs.size() - count + result].value;
  return found && found->kind == Kind::Tensor ? found : nullptr;
}

/// Whether the node may write to its operands: in place by its name, or an
/// operator of which nothing is known.
static bool mayWrite(const Node &node, const Target &target) {
  if (target.inPlace || target.isOut)
    return true;
  StringRef op = node.target;
  if (target.row || target.isCheck || isLoop(node) || op == withEffects ||
      !op.consume_front("torch.ops."))
    return false;
  return !op.starts_with("aten.") || op.rsplit('.').first.ends_with("_");
}

/// Whether what is written to `written` may be seen in `memory`: what an
/// operator gives that is not in the table may be a view of any of its tensors.
bool ProgramImporter::reaches(const Entry *written,
                              const llvm::DenseSet<const Entry *> &memory) {
  llvm::SmallVector<const Entry *> open = {written};
  llvm::DenseSet<const Entry *> seen;
  while (!open.empty()) {
    const Entry *entry = open.pop_back_val();
    if (!entry || !seen.insert(entry).second)
      continue;
    if (memory.contains(entry))
      return true;
    open.push_back(entry->base);
    const Node *node = entry->node;
    if (node && !isLoop(*node) && !findTarget(node->target).row)
      for (const NamedArgument &input : node->inputs)
        forEachTensor(input.value, [&](const std::string &name) {
          open.push_back(find(name));
        });
  }
  return false;
}

void pytorch::collectSymbols(const ExpressionPtr &expression,
                             llvm::StringSet<> &symbols) {
  if (!expression)
    return;
  if (expression->head == "Symbol")
    symbols.insert(expression->name);
  for (const ExpressionPtr &operand : expression->operands)
    collectSymbols(operand, symbols);
}

/// Nodes that outputs depend on: those that compute what is read, and those
/// that write to memory that is read later.
llvm::DenseSet<const Node *> ProgramImporter::findNeeded() {
  llvm::DenseSet<const Node *> needed;
  llvm::DenseSet<const Entry *> memory;
  // Of sizes and numbers, those that tensors hold.
  llvm::StringSet<> symbols;
  auto need = [&](const std::string &name) {
    wanted.insert(name);
    if (const Entry *root = rootOf(name))
      memory.insert(root);
    if (const TensorMeta *meta = metaOf(name))
      for (const ExpressionPtr &size : meta->sizes)
        collectSymbols(size, symbols);
  };
  auto needNumbers = [&](const Argument &argument, auto &self) -> void {
    for (const Argument &item : argument.items)
      self(item, self);
    if (argument.kind == Kind::SymInt || argument.kind == Kind::SymFloat ||
        argument.kind == Kind::SymBool)
      collectSymbols(expressionOf(argument.text), symbols);
  };
  for (const OutputSpec &output : program.outputs)
    if (output.kind == OutputSpec::Kind::User)
      forEachTensor(output.value, need);
  for (const Node &node : llvm::reverse(graph.nodes)) {
    bool isNeeded = false;
    for (const Argument &output : node.outputs)
      forEachTensor(output, [&](const std::string &name) {
        isNeeded |= wanted.contains(name);
      });
    Target target = findTarget(node.target);
    if (target.row)
      for (const Argument &output : node.outputs)
        if (ExpressionPtr number = expressionOf(output.text))
          isNeeded |=
              number->head == "Symbol" && symbols.contains(number->name);
    auto isWritten = [&](const Argument &argument) {
      for (size_t i = 0; i < node.outputs.size(); ++i)
        if (findWritten(node, target, i) == &argument)
          return true;
      return !target.row;
    };
    if (!isNeeded && mayWrite(node, target))
      for (const NamedArgument &input : node.inputs)
        if (isWritten(input.value))
          forEachTensor(input.value, [&](const std::string &name) {
            isNeeded |= reaches(find(name), memory);
          });
    if (!isNeeded)
      continue;
    needed.insert(&node);
    for (const NamedArgument &input : node.inputs) {
      forEachTensor(input.value, need);
      needNumbers(input.value, needNumbers);
    }
  }
  return needed;
}

// Writes.

/// Of a write that may be seen through a name, or not.
Failed ProgramImporter::failUndecided(const Entry &entry) {
  return emitter.fail("writes in place to memory of which '" +
                          printable(entry.name) +
                          "' is a view or a copy, depending on strides",
                      "write without in-place operators there, or export with "
                      "run_decompositions()");
}

/// All that sees the memory of `entry` computes its value again when it is next
/// read, but for the entries of `fresh`.
void ProgramImporter::markStale(Entry &entry,
                                const llvm::DenseSet<const Entry *> &fresh) {
  for (Entry *view : entry.views) {
    // A name that is not computed yet will see what is written.
    if (view->value && !fresh.contains(view)) {
      view->isStale = true;
      view->isTorn |= view->isUndecided;
    }
    markStale(*view, fresh);
  }
}

/// A value that is written over another, as that one's type has its sizes:
/// those of both are equal, which is assumed where it does not follow.
mlir::Value ProgramImporter::fitted(mlir::Value value, mlir::Value over) {
  Exprs shape = graph::getShape(value), wanted = graph::getShape(over);
  if (value.getType() == over.getType() || shape.size() != wanted.size() ||
      elementOf(value) != elementOf(over))
    return value;
  for (auto [a, b] : llvm::zip_equal(shape, wanted))
    if (!emitter.agree(a, b, "writes over it"))
      return value;
  value = emitter.getSymbols().resolve(value);
  over = emitter.getSymbols().resolve(over);
  return value.getType() == over.getType()
             ? value
             : emitter.reshape(value, graph::getShape(over));
}

/// Replaces the value of an entry and, through the views that lead to it, of
/// the memory that it shares.
llvm::LogicalResult ProgramImporter::write(Entry &written, mlir::Value value) {
  if (!written.value || written.imaginary)
    return emitter.fail("writes in place to complex numbers or to nothing, "
                        "which is not supported",
                        "write without in-place operators there");
  value = fitted(value, written.value);
  if (value.getType() != written.value.getType())
    return emitter.fail("writes " + emitter.describe(value.getType()) + " to " +
                            emitter.describe(written.value.getType()),
                        "export the program again");
  Entry *root = &written;
  while (root->base)
    root = root->base;
  if (auto it = stored.find(root->name); it != stored.end())
    return emitter.fail(
        "changes '" + printable(it->second->target) +
            "' of the model, which an engine keeps as it is",
        "make it an input of the exported function, and its new value an "
        "output");
  if (isStep && !root->node)
    return emitter.fail("changes what is handed to each step of a loop, which "
                        "is not supported",
                        "write without in-place operators there");
  if (!root->node)
    noteWritten(root->name);
  llvm::DenseSet<const Entry *> fresh;
  Entry *entry = &written;
  for (;; entry = entry->base) {
    fresh.insert(entry);
    entry->value = value;
    entry->isStale = false;
    if (!entry->base)
      break;
    if (entry->isUndecided)
      return failUndecided(*entry);
    mlir::Value before = currentValue(*entry->base);
    if (!before)
      return llvm::failure();
    WriteFunction back = findTarget(entry->node->target).row->write;
    if (!back)
      return emitter.fail("writes in place to a view made by " +
                              printable(entry->node->target) +
                              ", which is not supported",
                          "write without in-place operators there, or export "
                          "with run_decompositions()");
    Call call(emitter, *entry->node, *this);
    call.setWritten(entry->result);
    value = back(call, before, value);
    if (!value || emitter.failed())
      return llvm::failure();
    value = fitted(value, before);
    if (value.getType() != before.getType())
      return emitter.fail("gives " + emitter.describe(value.getType()) +
                          " where it writes through a view to " +
                          emitter.describe(before.getType()));
  }
  markStale(*root, fresh);
  return llvm::failure(emitter.failed());
}

/// Writes what a node gives to the tensors that it names. One of which there is
/// no view yet becomes the result, of whatever sizes: PyTorch resizes what
/// `out=` names.
llvm::LogicalResult ProgramImporter::writeResults(Call &call,
                                                  const Target &target,
                                                  ArrayRef<Part> results) {
  const Node &node = call.getNode();
  for (size_t i = 0; i < (target.isOut ? node.outputs.size() : 1); ++i) {
    const Argument *written = findWritten(node, target, i);
    Entry *entry = written ? find(written->text) : nullptr;
    const TensorMeta *meta = written ? metaOf(written->text) : nullptr;
    if (!entry || !meta || i >= results.size())
      return emitter.fail("writes to no tensor", "export the program again");
    mlir::Type element = partType(meta->dtype, emitter.getContext());
    Part part{
        emitter.cast(results[i].value, element), results[i].imaginary, {}};
    bool isAlone = target.isOut && entry->node && !entry->base &&
                   llvm::none_of(entry->views,
                                 [](Entry *view) { return bool(view->value); });
    if (isAlone)
      setValue(*entry, part);
    else if (!currentValue(*entry) || failed(write(*entry, part.value)))
      return llvm::failure();
  }
  return llvm::failure(emitter.failed());
}
