// An exported program as plain data: what models/<name>.json holds.
#ifndef CHARONIA_FRONTENDS_PYTORCH_PROGRAM_H
#define CHARONIA_FRONTENDS_PYTORCH_PROGRAM_H

#include "frontends/common/Emitter.h"
#include "frontends/pytorch/Expression.h"
#include "frontends/pytorch/Trees.h"
#include <map>

namespace charonia::frontend::pytorch {

struct Graph;

/// An argument or a result of a node. The file's kinds for one type, with and
/// without symbols, optional or not, are one kind here; lists of any kind are
/// List.
struct Argument {
  enum class Kind {
    None,
    Tensor,       ///< text: the value's name
    Integer,      ///< integer
    SymInt,       ///< text: a name of Graph::integers
    Float,        ///< number
    Complex,      ///< items: two of Float
    SymFloat,     ///< text
    Bool,         ///< integer
    SymBool,      ///< text
    String,       ///< text
    ScalarType,   ///< integer: a type's code
    MemoryFormat, ///< integer
    Layout,       ///< integer
    Device,       ///< text
    List,         ///< items
    Graph,        ///< graph
    Unsupported,  ///< text: the file's word for the kind
  };
  Kind kind = Kind::None;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Argument> items;
  std::shared_ptr<const Graph> graph;

  bool isNone() const { return kind == Kind::None; }
};

struct NamedArgument {
  /// Empty for operands of regions.
  std::string name;
  Argument value;
};

/// What a tensor is said to be. Sizes are not checked.
struct TensorMeta {
  int dtype = 0, layout = 0;
  std::vector<ExpressionPtr> sizes, strides;
  ExpressionPtr offset;
};

struct Node {
  /// "torch.ops.aten.conv2d.default", and "conv2d_1", which may be empty.
  std::string target, name;
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  /// "encoder.layer.3.attention", and "model.py:12: return self.fc(x)".
  std::string module, line;
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  /// In the order of execution.
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta, std::less<>> tensors;
  /// Sizes by name; null where the file gives none.
  std::map<std::string, ExpressionPtr, std::less<>> integers;
  /// Numbers that follow from sizes by name.
  std::map<std::string, ExpressionPtr, std::less<>> floats;
  /// Conditions on sizes by name.
  std::map<std::string, ExpressionPtr, std::less<>> conditions;
};

struct InputSpec {
  enum class Kind { Parameter, Buffer, Constant, User, Fixed, Object };
  Kind kind = Kind::User;
  /// The name in Graph::inputs; the name in the weights' configuration.
  std::string name, target;
};

struct OutputSpec {
  enum class Kind { User, Mutation, Other };
  Kind kind = Kind::User;
  Argument value;
  /// Of a mutation: what changes.
  std::string target;
};

/// Bounds of a symbol; none where open.
struct SymbolRange {
  std::optional<int64_t> min, max;
};

struct Program {
  /// After run_decompositions().
  bool isDecomposed = false;
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  /// Of plain symbols.
  std::map<std::string, SymbolRange, std::less<>> ranges;
  /// What else holds of the sizes of inputs that the program is for, as Python.
  std::vector<std::string> guards;
  /// Names of the exported function's results, and how one comes from its
  /// arguments to its inputs, as far as the file says; empty where it does not.
  std::vector<std::string> outputNames;
  std::vector<InputPaths> inputPaths;
};

/// Reads a program; everything about the text's form is checked.
std::optional<Program> readProgram(llvm::StringRef text, Problem &problem);

/// Of a tensor's "meta", as weights have it too.
TensorMeta readTensorMeta(const Json &json, ExpressionParser &expressions);

/// The type for a code of the file; null for those that are not supported.
mlir::Type elementType(int dtype, mlir::MLIRContext *context);
/// Of complex numbers the type of their parts, else elementType().
mlir::Type partType(int dtype, mlir::MLIRContext *context);
bool isComplex(int dtype);
/// "float32".
std::string dtypeName(int dtype);

} // namespace charonia::frontend::pytorch

#endif
