// One node of an exported program as the rows of the operator table see it.
#ifndef CHARONIA_FRONTENDS_PYTORCH_CALL_H
#define CHARONIA_FRONTENDS_PYTORCH_CALL_H

#include "frontends/pytorch/Program.h"
#include "llvm/ADT/StringSet.h"

namespace charonia::frontend::pytorch {

/// What names of the program stand for while it is imported.
class Names {
public:
  virtual ~Names() = default;
  /// The value of a tensor, its imaginary part where that is asked for and it
  /// has one; null where it could not be built.
  virtual mlir::Value valueOf(llvm::StringRef name, bool imaginary) = 0;
  /// What the file says of a tensor; null where it says nothing.
  virtual const TensorMeta *metaOf(llvm::StringRef name) const = 0;
  /// A size by name; null where it depends on data.
  virtual mlir::AffineExpr sizeOf(llvm::StringRef name) = 0;
  /// A number by name, that sizes do not have or cannot be, as a scalar of
  /// float64 or 64-bit integers; null where it depends on data.
  virtual mlir::Value numberOf(llvm::StringRef name) = 0;
  /// What a number is from here on, a scalar: sizes may follow from it, where
  /// it follows from sizes.
  virtual void define(llvm::StringRef name, mlir::Value number) = 0;
  /// Sizes of the file; an entry is null where it depends on data.
  virtual Exprs convertSizes(llvm::ArrayRef<ExpressionPtr> sizes) = 0;
  Exprs shapeOf(const TensorMeta &meta) { return convertSizes(meta.sizes); }
};

/// A node with its arguments by name. The file leaves out arguments that have
/// their defaults, so each reading says what holds then. A reading that does
/// not fit fails the node; the row's last call, `yield`, reports it.
class Call {
public:
  Call(Emitter &emitter, const Node &node, Names &names, bool inPlace = false);

  /// Lets tensors and numbers be read as parts of complex ones: real parts, but
  /// for imaginary ones of `arguments`.
  void readParts(llvm::ArrayRef<llvm::StringRef> arguments) {
    hasParts = true;
    imaginaryOf.assign(arguments.begin(), arguments.end());
  }
  /// Whether one of these arguments is complex.
  bool isComplex(llvm::ArrayRef<llvm::StringRef> arguments);

  /// Of a write through a view, which of the node's results that is.
  void setWritten(unsigned result) { written = result; }
  unsigned getWritten() const { return written; }

  const Node &getNode() const { return node; }
  Emitter &getEmitter() { return emitter; }

  // Arguments.
  /// Whether an argument is given and not None.
  bool has(llvm::StringRef name);
  /// The argument; null where it is left out or None.
  const Argument *find(llvm::StringRef name);
  /// Arguments that make no difference here.
  void ignore(llvm::ArrayRef<llvm::StringRef> names);
  mlir::Value tensor(llvm::StringRef name);
  /// Null where it is left out or None.
  mlir::Value optionalTensor(llvm::StringRef name);
  /// Real and imaginary part; that is null where the tensor is real.
  std::pair<mlir::Value, mlir::Value> complexTensor(llvm::StringRef name);
  /// The same of a tensor, or a number in its place, as values of an element
  /// type.
  std::pair<mlir::Value, mlir::Value> complexOperand(llvm::StringRef name,
                                                     mlir::Type element);
  Values tensors(llvm::StringRef name);
  /// A tensor, or a number in its place, as a value of an element type.
  mlir::Value operand(llvm::StringRef name, mlir::Type element);
  /// What the file says of a tensor; null where it says nothing.
  const TensorMeta *metaOf(llvm::StringRef name);
  /// Sizes of the file; entries are null where they depend on data.
  Exprs convert(llvm::ArrayRef<ExpressionPtr> sizes) {
    return names.convertSizes(sizes);
  }
  int64_t integer(llvm::StringRef name, std::optional<int64_t> otherwise = {});
  double number(llvm::StringRef name, std::optional<double> otherwise = {});
  /// A list of numbers.
  llvm::SmallVector<double> numbers(llvm::StringRef name);
  bool flag(llvm::StringRef name, std::optional<bool> otherwise = {});
  std::string text(llvm::StringRef name, llvm::StringRef otherwise);
  /// The element type that an argument names; null where it is left out.
  mlir::Type dtype(llvm::StringRef name);
  /// A number that may follow from sizes.
  mlir::AffineExpr size(llvm::StringRef name,
                        std::optional<int64_t> otherwise = {});
  /// A list of such; a single number is a list of one.
  Exprs sizes(llvm::StringRef name);
  llvm::SmallVector<int64_t> integers(llvm::StringRef name,
                                      llvm::ArrayRef<int64_t> otherwise = {});
  /// `count` integers: given so many, or one for all, or `otherwise` for all.
  llvm::SmallVector<int64_t> repeated(llvm::StringRef name, unsigned count,
                                      int64_t otherwise);
  /// A dimension of `rank`, negative ones from the end; fails where there is
  /// none.
  int64_t axis(llvm::StringRef name, int64_t rank,
               std::optional<int64_t> otherwise = {});
  int64_t axis(int64_t value, int64_t rank);
  /// Distinct dimensions; all of them where the argument is left out, and of an
  /// empty list too unless that is said to be none.
  llvm::SmallVector<int64_t> axes(llvm::StringRef name, int64_t rank,
                                  bool emptyIsAll = true);
  /// The type in which a result of type `element` is computed: float where a
  /// number among the arguments has no exact form in a half type.
  mlir::Type exactType(mlir::Type element,
                       llvm::ArrayRef<llvm::StringRef> arguments);
  /// The type that arithmetic of these arguments is done in.
  mlir::Type promote(llvm::ArrayRef<llvm::StringRef> arguments);

  /// The type in which a result of these arguments is computed: the result's,
  /// or what they promote to where it is then stored in place.
  mlir::Type arithmeticType(llvm::ArrayRef<llvm::StringRef> arguments);

  // Results.
  /// Fails where a result cannot have these sizes, by what the file says of it.
  llvm::LogicalResult checkShape(llvm::ArrayRef<mlir::AffineExpr> shape,
                                 unsigned i = 0);
  unsigned numResults() const { return outputs.size(); }
  /// What the file says of a result.
  mlir::Type resultElement(unsigned i = 0);
  Exprs resultShape(unsigned i = 0);
  llvm::LogicalResult yield(mlir::ValueRange values);
  llvm::LogicalResult yield(mlir::Value value) {
    return yield(mlir::ValueRange(value));
  }
  /// The result is not a tensor, but the number that a scalar holds.
  llvm::LogicalResult yieldNumber(mlir::Value scalar);
  llvm::LogicalResult yieldComplex(mlir::ValueRange real,
                                   mlir::ValueRange imaginary);
  llvm::ArrayRef<mlir::Value> getResults() const { return results; }
  llvm::ArrayRef<mlir::Value> getImaginary() const { return imaginary; }
  /// The names of the results, those of lists one after another.
  llvm::ArrayRef<std::string> getOutputs() const { return outputs; }

  Failed fail(const llvm::Twine &what, const llvm::Twine &remedy = "") {
    return emitter.fail(what, remedy);
  }

private:
  Failed wrongKind(llvm::StringRef name, llvm::StringRef wanted);
  mlir::AffineExpr sizeFrom(const Argument &argument, llvm::StringRef name);
  mlir::Value tensorFrom(const Argument &argument, llvm::StringRef name);
  const TensorMeta *resultMeta(unsigned i);

  Emitter &emitter;
  const Node &node;
  Names &names;
  llvm::StringSet<> used;
  std::vector<std::string> outputs;
  Values results, imaginary;
  bool inPlace = false, hasParts = false;
  llvm::SmallVector<llvm::StringRef> imaginaryOf;
  unsigned written = 0;
};

/// Whether sizes may be one: of plain ones (numbers, symbols) none other.
bool areAlike(mlir::AffineExpr a, mlir::AffineExpr b);

/// The type in which values of both types are combined.
mlir::Type promoteTypes(mlir::Type a, mlir::Type b);

} // namespace charonia::frontend::pytorch

#endif
