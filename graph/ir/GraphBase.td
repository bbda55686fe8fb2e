// The graph dialect and the base classes of its operators.
#ifndef CHARONIA_GRAPH_BASE
#define CHARONIA_GRAPH_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "graph/ir/GraphInterfaces.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let cppNamespace = "::charonia::graph";
  let summary = "Tensor graphs of trained models";
  let description = [{
    Operators on whole tensors, each with one meaning. Tensors are builtin
    ranked tensors; a tensor with dynamic dimensions carries its symbolic shape
    as an AffineMap encoding over the module's shape symbols (see Shape.h).
    Integers are signed unless their type says ui8 ... ui64. Elementwise
    operators broadcast as NumPy does.
  }];
  let extraClassDeclaration = [{
    /// The weights that `graph.weight` operators of this context refer to.
    WeightStore &getWeights() { return *weights; }
    /// Decides whether sizes agree (see Constraints.h); may be null.
    SizeRules *sizeRules = nullptr;
  private:
    std::shared_ptr<WeightStore> weights;
    void registerOps();
  public:
  }];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
}

// A ranked tensor whose dynamic dimensions are all described by its encoding.
class Graph_TensorOf<list<Type> elements, string what> : Type<
    And<[RankedTensorOf<elements>.predicate,
         CPred<"::charonia::graph::hasSymbolicShape($_self)">]>,
    "ranked tensor of " # what # " whose dynamic dimensions are symbolic",
    "::mlir::RankedTensorType">;
def Graph_Tensor : Graph_TensorOf<[AnyFloat, AnyInteger, Index], "floats or integers">;
def Graph_FloatTensor : Graph_TensorOf<[AnyFloat], "floats">;
def Graph_BoolTensor : Graph_TensorOf<[I1], "i1">;
def Graph_IntTensor : Graph_TensorOf<[AnyInteger, Index], "integers">;

class Graph_RawOp<string mnemonic, list<Trait> traits = []>
    : Op<Graph_Dialect, mnemonic, traits>;

// An operator without side effects that answers the questions of GraphOp.
class Graph_Op<string mnemonic, list<Trait> traits = []>
    : Graph_RawOp<mnemonic, !listconcat([Pure, GraphOpInterface], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// Result types follow from operands and attributes. Inferred and actual types
// that differ only in expressions that may be equal are compatible.
def Graph_InferredSymbolicType : NativeOpTrait<"InferredSymbolicType", [], [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange a, ::mlir::TypeRange b);
  }], [{
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange a, ::mlir::TypeRange b) {
      return a.size() == 1 && b.size() == 1 && ::charonia::graph::areCompatible(a[0], b[0]);
    }
  }]> {
  let cppNamespace = "::charonia::graph";
}
def Graph_Inferred : TraitList<[
  DeclareOpInterfaceMethods<InferTypeOpInterface>, Graph_InferredSymbolicType]>;

class Graph_InferredOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([Graph_Inferred], traits)>;

#endif
