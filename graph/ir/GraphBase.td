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
  private:
    std::shared_ptr<WeightStore> weights;
    void registerOps();
  public:
  }];
  let useDefaultAttributePrinterParser = 0;
}

def Graph_Tensor : TensorOf<[AnyFloat, AnyInteger, Index]>;
def Graph_FloatTensor : TensorOf<[AnyFloat]>;
def Graph_BoolTensor : TensorOf<[I1]>;
def Graph_IntTensor : TensorOf<[AnyInteger]>;

class Graph_RawOp<string mnemonic, list<Trait> traits = []>
    : Op<Graph_Dialect, mnemonic, traits>;

// An operator without side effects that answers the questions of GraphOp.
class Graph_Op<string mnemonic, list<Trait> traits = []>
    : Graph_RawOp<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<GraphOpInterface>], traits)> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// ... whose result type follows from operands and attributes.
class Graph_InferredOp<string mnemonic, list<Trait> traits = []>
    : Graph_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<InferTypeOpInterface>], traits)>;

#endif
