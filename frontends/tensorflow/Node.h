// One node of a TensorFlow graph as the rows of the operator table see it.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_NODE_H
#define CHARONIA_FRONTENDS_TENSORFLOW_NODE_H

#include "frontends/common/Operands.h"
#include "frontends/common/builders/Complex.h"
#include "frontends/tensorflow/Model.h"

namespace charonia::frontend::tensorflow {

/// A variable: where its tensor is. The key is empty where nothing says it;
/// `part` is Stored's.
struct Variable {
  std::string node, key, part;
  /// The node that holds it, which says of what type and shape it is.
  const proto::Node *holder = nullptr;
};

/// A tensor whose dimensions are laid in blocks over the batch
/// (SpaceToBatchND), as long as that need not be done: a convolution between
/// that and its reversal is a dilated one, also where sizes are open.
struct Blocks {
  mlir::Value source;
  /// By dimension of the source; one that is not known of a size that is open.
  Exprs lows, highs;
  // By dimension of what the padded source is made into:
  /// the size of a block, 1 where there are none, and
  llvm::SmallVector<int64_t> sizes;
  /// the dimension of the source that it is; -1 for a new one.
  llvm::SmallVector<int64_t> dims;
  /// What is made of the padded source, so that blocks of it are the tensor.
  std::function<mlir::Value(mlir::Value padded, Emitter &emitter)> make;
};
/// The tensor itself.
mlir::Value layOut(const Blocks &blocks, Emitter &emitter);

/// Rows of one part of a tensor that data divides (DynamicPartition): all of
/// its rows, and by row the number of its part. How many are of the part
/// depends on data.
struct Part {
  mlir::Value rows, parts;
  /// Which of how many parts.
  int64_t number, count;
};
/// The rows of a part that are positions, and 0 in place of the others.
mlir::Value positionsOf(const Part &part, Emitter &emitter);

/// A list of tensors, null where one is not set. Lists do not change: what sets
/// an element makes a new one, which shares most of the old one.
class TensorList {
public:
  explicit TensorList(int64_t count = 0);
  int64_t size() const { return count; }
  mlir::Value operator[](int64_t i) const {
    const auto &chunk = chunks[i / chunkSize];
    return chunk ? (*chunk)[i % chunkSize] : mlir::Value();
  }
  /// With element i set, which may lie behind the last one.
  TensorList with(int64_t i, mlir::Value value) const;
  /// In steps that are repeated: the state that it was found as, whose elements
  /// that are not set here may be.
  std::optional<size_t> carriedAs;

private:
  static constexpr int64_t chunkSize = 64;
  using Chunk = std::array<mlir::Value, chunkSize>;
  std::vector<std::shared_ptr<const Chunk>> chunks;
  int64_t count;
};

/// A list of as many tensors as an open size says. Steps that are repeated set
/// one each.
struct OpenList {
  mlir::AffineExpr count;
  /// All elements; null where none is set.
  mlir::Value stacked;
  /// In a step: the element that it sets, which one that is, and in what.
  mlir::Value element;
  mlir::AffineExpr place;
  std::shared_ptr<const OpenList> from;
};

/// What a name of the graph stands for: a tensor, a variable, or a list of
/// tensors.
struct Item {
  mlir::Value value;
  std::shared_ptr<const Variable> variable;
  std::shared_ptr<const TensorList> list;
  std::shared_ptr<const OpenList> openList;
  /// Of a tensor that is not laid out yet.
  std::shared_ptr<const Blocks> blocks;
  /// Of a complex tensor, which is two: inputs, outputs and lists are not.
  std::shared_ptr<const Complex> complex;
  std::shared_ptr<const Part> part;
  /// An input of the model whose type no engine can have.
  const Port *unsupported = nullptr;
  /// Follows from a node that failed: further failures are no news.
  bool tainted = false;
  /// Of a branch that is never taken.
  bool isUntaken = false;

  Item() = default;
  Item(mlir::Value value) : value(value) {}
  bool isNothing() const {
    return !value && !variable && !list && !openList && !blocks && !complex &&
           !part;
  }
};
using Items = llvm::SmallVector<Item>;

/// A node with its operands. The file leaves out attributes that have their
/// defaults, so each reading says what holds then.
class Node : public Operands {
public:
  Node(Emitter &emitter, Model &model, const proto::Node &proto, Items items,
       std::vector<std::string> names);

  const std::string &op() const { return proto.op(); }
  const std::string &name() const { return proto.name(); }
  Model &getModel() { return model; }
  const proto::Node &message() const { return proto; }
  const Item &item(unsigned i) const { return items[i]; }
  /// Blocks that operand i is; null for what it is else.
  const Blocks *blocks(unsigned i) const {
    return i < items.size() && !items[i].value ? items[i].blocks.get()
                                               : nullptr;
  }
  /// The part that operand i is; null where it is none.
  const Part *part(unsigned i) const {
    return i < items.size() ? items[i].part.get() : nullptr;
  }
  void setInput(unsigned i, mlir::Value value) { inputs[i] = value; }
  bool hasComplex() const {
    return llvm::any_of(items, [](const Item &i) { return bool(i.complex); });
  }
  /// Makes operands that are complex the tensors that are one of their parts.
  void usePart(mlir::Value Complex::*part);
  /// Makes operand i a tensor that it is not yet.
  bool layOut(unsigned i);
  std::string inputName(unsigned i) const override {
    return i < names.size() ? names[i] : "";
  }
  /// As many as an operator may take that takes any number.
  static constexpr unsigned manyInputs = 1 << 16;
  /// Fails unless there are as many operands, all of them tensors.
  llvm::LogicalResult needsTensors(unsigned low, unsigned high);

  // Attributes.
  const proto::Attribute *find(llvm::StringRef name) const;
  // Each fails the node where the attribute is of another kind.
  int64_t integer(llvm::StringRef name, int64_t otherwise) const;
  bool flag(llvm::StringRef name, bool otherwise = false) const;
  double number(llvm::StringRef name, double otherwise) const;
  std::string text(llvm::StringRef name, llvm::StringRef otherwise) const;
  llvm::SmallVector<int64_t> integers(llvm::StringRef name) const;
  /// An element type; null, and a failed node, where it is none that is
  /// supported.
  mlir::Type type(llvm::StringRef name, int otherwise);
  /// The type of sizes, int32 or int64 (by default int32); null, and a failed
  /// node, where the attribute says another.
  mlir::Type sizeType(llvm::StringRef name);

  // Results.
  llvm::LogicalResult yield(mlir::Value value) {
    return yield(mlir::ValueRange(value));
  }
  llvm::LogicalResult yield(mlir::ValueRange values);
  llvm::LogicalResult yieldComplex(const Complex &z);
  llvm::LogicalResult yieldItem(Item item);
  Items &getResults() { return results; }

private:
  llvm::LogicalResult checkCount(unsigned low) const;
  static Values tensorsOf(llvm::ArrayRef<Item> items);
  const proto::Attribute *find(llvm::StringRef name,
                               proto::Attribute::ValueCase kind) const;

  Model &model;
  const proto::Node &proto;
  Items items, results;
  std::vector<std::string> names;
};

/// Builds a node's results and yields them, or fails with a reason.
using ImportFunction = llvm::LogicalResult (*)(Node &node, Emitter &emitter);

/// One operator. Its results' names, separated by spaces, are given where there
/// are several: functions call them by name.
struct Row {
  const char *op;
  ImportFunction import;
  const char *results = "";
  /// Whether operand 0 may be blocks that are not laid out.
  bool takesBlocks = false;
  /// The operand whose rows, one by one, the result's come from: it may be
  /// those of a part.
  int byRows = -1;
  /// How complex operands are taken: by the row itself, if it can; built of
  /// real and of imaginary parts alike; or just their shapes looked at.
  enum class OfComplex { Itself, EachPart, Shape } complex = OfComplex::Itself;
  /// What it does with the variable that operand 0 is; of those that are one
  /// themselves Value is read by being used (TF1), Handle is not.
  enum class OfVariable { Nothing, Reads, PassesOn, Handle, Value };
  OfVariable variable = OfVariable::Nothing;
  /// How many results of a graph it has where nobody reads them, or the
  /// attribute that says so: a number or one type each.
  int outputs = 1;
  const char *counted = "";
};
/// The row, for complex operands as well.
constexpr Row ofParts(Row row) {
  row.complex = Row::OfComplex::EachPart;
  return row;
}
constexpr Row ofShape(Row row) {
  row.complex = Row::OfComplex::Shape;
  return row;
}

// One list a family, in ops/<Family>.cpp.
llvm::ArrayRef<Row> elementwiseRows();
llvm::ArrayRef<Row> contractionRows();
llvm::ArrayRef<Row> windowRows();
llvm::ArrayRef<Row> normalizationRows();
llvm::ArrayRef<Row> reductionRows();
llvm::ArrayRef<Row> viewRows();
llvm::ArrayRef<Row> blockRows();
llvm::ArrayRef<Row> sliceRows();
llvm::ArrayRef<Row> indexRows();
llvm::ArrayRef<Row> diagonalRows();
llvm::ArrayRef<Row> segmentRows();
llvm::ArrayRef<Row> resizeRows();
llvm::ArrayRef<Row> sourceRows();
llvm::ArrayRef<Row> listRows();
llvm::ArrayRef<Row> arrayRows();
llvm::ArrayRef<Row> colorRows();
llvm::ArrayRef<Row> cropRows();
llvm::ArrayRef<Row> fakeQuantRows();
llvm::ArrayRef<Row> fourierRows();
llvm::ArrayRef<Row> dynamicRows();
llvm::ArrayRef<Row> partitionRows();

/// All rows, sorted by operator.
llvm::ArrayRef<Row> allRows();
/// Null where there is none.
const Row *findRow(llvm::StringRef op);
/// Whether a node is a variable itself.
bool isVariable(const proto::Node &node);

} // namespace charonia::frontend::tensorflow

#endif
