// Elementwise operators. Each broadcasts its operands as NumPy does.
#ifndef CHARONIA_GRAPH_ELEMENTWISE
#define CHARONIA_GRAPH_ELEMENTWISE

include "graph/ir/GraphBase.td"

class Graph_Elementwise<string mnemonic, list<Trait> traits = []>
    : Graph_InferredOp<mnemonic, traits> {
  let results = (outs Graph_Tensor:$result);
  // The element that elements x and y of floats and of integers give, in terms of
  // graph/ir/Scalar.h; where empty, constants are not folded.
  string floats = "";
  string integers = "";
  code scalarDefinition = [{
    std::optional<::charonia::graph::Scalar> $cppClass::evaluateScalar(
        ::llvm::ArrayRef<::charonia::graph::Scalar> operands) {
      using namespace ::charonia::graph::scalar;
      if (::llvm::isa<::mlir::FloatType>(::mlir::getElementTypeOrSelf((*this)->getOperand(0)))) {
        [[maybe_unused]] double x = operands.front().real, y = operands.back().real;
        return }] # !if(!empty(floats), "std::nullopt", "result(" # floats # ")") # [{;
      }
      [[maybe_unused]] int64_t x = operands.front().integer, y = operands.back().integer;
      return }] # !if(!empty(integers), "std::nullopt", "result(" # integers # ")") # [{;
    }
  }];
  // The range of the result (graph/ir/Scalar.h), given those of the operands: x is
  // the first one, y the last; where empty, nothing is known.
  string range = "";
  code rangeDefinition = [{
    std::optional<::charonia::graph::RealRange> $cppClass::getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange> operands) {
      using namespace ::charonia::graph::scalar;
      using ::charonia::graph::RealRange;
      [[maybe_unused]] RealRange x = operands.front(), y = operands.back();
      return }] # !if(!empty(range), "std::nullopt", range) # [{;
    }
  }];
  // Whether integers wrap behind the operator as in front of it, in terms of `operand`.
  string wraps = "false";
  code wrapDefinition = [{
    bool $cppClass::commutesWithWrapping([[maybe_unused]] unsigned operand) {
      return }] # wraps # [{;
    }
  }];
  // What mayCancel answers.
  bit cancels = 0;
  // The integer that integers x and y give, in terms of `algebra`; where empty,
  // evaluateElement tells.
  string algebraic = "";
  code integerDefinition = [{
    ::mlir::AffineExpr $cppClass::evaluateInteger(
        [[maybe_unused]] ::charonia::graph::IntegerAlgebra &algebra,
        ::llvm::ArrayRef<::mlir::AffineExpr> elements) {
      [[maybe_unused]] ::mlir::AffineExpr x = elements.front(), y = elements.back();
      return }] # !if(!empty(algebraic), "evaluateElement(elements, {})", algebraic) # [{;
    }
  }];
  code sharedDefinition = scalarDefinition # rangeDefinition # wrapDefinition # integerDefinition;
  let extraClassDefinition = sharedDefinition;
  // Further questions that an operator answers in Elementwise.cpp.
  code moreDecl = "";
  // What the class shares is implemented once, in Elementwise.cpp.
  code commonDecl = [{
    std::optional<::charonia::graph::Scalar> evaluateScalar(
        ::llvm::ArrayRef<::charonia::graph::Scalar> operands);
    std::optional<::charonia::graph::RealRange> getRange(
        ::llvm::ArrayRef<::charonia::graph::RealRange> operands);
    bool commutesWithWrapping(unsigned operand);
    bool mayCancel() { return }] # !if(cancels, "true", "false") # [{; }
    ::mlir::AffineExpr evaluateInteger(::charonia::graph::IntegerAlgebra &algebra,
                                       ::llvm::ArrayRef<::mlir::AffineExpr> elements);
    ::charonia::graph::OpRole getRole() { return ::charonia::graph::OpRole::Pointwise; }
    ::mlir::AffineMap getOperandMap(unsigned operand) {
      return ::charonia::graph::broadcastMap((*this)->getOperand(operand), getResult());
    }
  }] # moreDecl;
  code linearDecl = [{
    std::optional<::charonia::graph::Linear> getLinear(unsigned operand);
  }];
  code conditionsDecl = [{
    std::optional<::charonia::graph::Exprs> getConditionsAt(
        ::llvm::ArrayRef<::mlir::AffineExpr> coordinates,
        ::charonia::graph::ContentDemand contents,
        ::charonia::graph::ConditionDemand conditions);
  }];
  code symbolicDecl = [{
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor> operands);
    ::mlir::AffineExpr evaluateElement(::llvm::ArrayRef<::mlir::AffineExpr> elements,
                                       ::llvm::ArrayRef<::mlir::AffineExpr> extents);
  }];
}

// `codeSize` is what getCodeSize answers; from 16 on an operator is expensive.
class Graph_Unary<string mnemonic, string what, int codeSize = 1, bit symbolic = 0,
                  Type operand = Graph_FloatTensor> : Graph_Elementwise<mnemonic> {
  let summary = what;
  let arguments = (ins operand:$input);
  let extraClassDeclaration = commonDecl # [{
    bool isExpensive() { return }] # !if(!ge(codeSize, 16), "true", "false") # [{; }
    int64_t getCodeSize() { return }] # codeSize # [{; }
  }] # !if(symbolic, symbolicDecl, [{
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
  }]);
  let extraClassDefinition = sharedDefinition # [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *,
        std::optional<::mlir::Location>, ::mlir::ValueRange operands, ::mlir::DictionaryAttr,
        ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      types.push_back(operands[0].getType());
      return ::mlir::success();
    }
  }];
}

def Graph_NegOp : Graph_Unary<"neg", "-x", 1, 1, Graph_Tensor> {
  let range = "-x";
  let moreDecl = linearDecl;
  let floats = "-x";
  let integers = "wrap(-uint64_t(x))";
  let wraps = "true";
}
def Graph_AbsOp : Graph_Unary<"abs", "|x|", 1, 0, Graph_Tensor> {
  let range = "hull(RealRange{0, 0}, hull(x, -x))";
  let floats = "std::fabs(x)";
  let integers = "x < 0 ? wrap(-uint64_t(x)) : x";
  let algebraic = "algebra.magnitude(x)";
}
def Graph_SignOp : Graph_Unary<"sign", "-1, 0 or 1; NaN stays", 1, 0, Graph_Tensor> {
  let range = "RealRange{-1, 1}";
  let floats = "sign(x)";
  let integers = "sign(x)";
  let algebraic = "algebra.sign(x)";
}
def Graph_NotOp : Graph_Unary<"not", "logical not of i1, bitwise not of integers", 1, 1, Graph_IntTensor> {
  let moreDecl = conditionsDecl;
  let integers = "::mlir::getElementTypeOrSelf(getInput()).isInteger(1) ? int64_t(!x) : ~x";
  let wraps = "true";
}
def Graph_ExpOp : Graph_Unary<"exp", "e to the x", 22> {
  let floats = "std::exp(x)";
  let range = "rising(x, [](double v) { return std::exp(v); })";
}
def Graph_LogOp : Graph_Unary<"log", "natural logarithm", 37> {
  let floats = "std::log(x)";
  let range = "rising(hull(x, RealRange{0, 0}), [](double v) { return std::log(std::max(v, 0.0)); })";
}
def Graph_Expm1Op : Graph_Unary<"expm1", "exp(x) - 1", 25> {
  let floats = "std::expm1(x)";
  let range = "rising(x, [](double v) { return std::expm1(v); })";
}
def Graph_Log1pOp : Graph_Unary<"log1p", "log(1 + x)", 49> {
  let floats = "std::log1p(x)";
  let range = "rising(x, [](double v) { return std::log1p(std::max(v, -1.0)); })";
}
def Graph_SqrtOp : Graph_Unary<"sqrt", "square root", 2> {
  let floats = "std::sqrt(x)";
  let range = "rising(x, [](double v) { return std::sqrt(std::max(v, 0.0)); })";
}
def Graph_RsqrtOp : Graph_Unary<"rsqrt", "1 / sqrt(x)", 3> {
  let floats = "1 / std::sqrt(x)";
  let range = "x.low > 0 ? RealRange{1 / std::sqrt(x.high), 1 / std::sqrt(x.low)} : RealRange{}";
}
def Graph_ReciprocalOp : Graph_Unary<"reciprocal", "1 / x", 2> {
  let floats = "1 / x";
  let range = "x.low > 0 || x.high < 0 ? RealRange{1 / x.high, 1 / x.low} : RealRange{}";
}
def Graph_ErfOp : Graph_Unary<"erf", "Gauss error function", 40> {
  let floats = "std::erf(x)";
  let range = "RealRange{-1, 1}";
}
def Graph_ErfcOp : Graph_Unary<"erfc", "1 - erf(x), as exact where it is small", 62> {
  let floats = "std::erfc(x)";
  let range = "RealRange{0, 2}";
}
def Graph_TanhOp : Graph_Unary<"tanh", "hyperbolic tangent", 35> {
  let floats = "std::tanh(x)";
  let range = "RealRange{-1, 1}";
}
def Graph_SigmoidOp : Graph_Unary<"sigmoid", "1 / (1 + exp(-x))", 26> {
  let floats = "1 / (1 + std::exp(-x))";
  let range = "RealRange{0, 1}";
}
def Graph_SinOp : Graph_Unary<"sin", "sine", 190> {
  let floats = "std::sin(x)";
  let range = "RealRange{-1, 1}";
}
def Graph_CosOp : Graph_Unary<"cos", "cosine", 190> {
  let floats = "std::cos(x)";
  let range = "RealRange{-1, 1}";
}
def Graph_TanOp : Graph_Unary<"tan", "tangent", 190> { let floats = "std::tan(x)"; }
def Graph_AsinOp : Graph_Unary<"asin", "arc sine", 20> { let floats = "std::asin(x)"; }
def Graph_AcosOp : Graph_Unary<"acos", "arc cosine", 23> { let floats = "std::acos(x)"; }
def Graph_AtanOp : Graph_Unary<"atan", "arc tangent", 20> { let floats = "std::atan(x)"; }
def Graph_SinhOp : Graph_Unary<"sinh", "hyperbolic sine", 58> { let floats = "std::sinh(x)"; }
def Graph_CoshOp : Graph_Unary<"cosh", "hyperbolic cosine", 52> { let floats = "std::cosh(x)"; }
def Graph_AsinhOp : Graph_Unary<"asinh", "inverse hyperbolic sine", 97> { let floats = "std::asinh(x)"; }
def Graph_AcoshOp : Graph_Unary<"acosh", "inverse hyperbolic cosine", 96> { let floats = "std::acosh(x)"; }
def Graph_AtanhOp : Graph_Unary<"atanh", "inverse hyperbolic tangent", 55> { let floats = "std::atanh(x)"; }
def Graph_FloorOp : Graph_Unary<"floor", "largest integer not above x"> {
  let range = "rising(x, [](double v) { return std::floor(v); })";
  let floats = "std::floor(x)";
}
def Graph_CeilOp : Graph_Unary<"ceil", "smallest integer not below x"> {
  let range = "rising(x, [](double v) { return std::ceil(v); })";
  let floats = "std::ceil(x)";
}
def Graph_RoundOp : Graph_Unary<"round", "nearest integer, halves to even"> {
  let range = "rising(x, [](double v) { return std::nearbyint(v); })";
  let floats = "std::nearbyint(x)";
}

def Graph_GeluOp : Graph_Elementwise<"gelu"> {
  let scalarDefinition = "";
  let summary = "x * Phi(x), exactly or by the tanh approximation";
  let arguments = (ins Graph_FloatTensor:$input, UnitAttr:$tanh);
  let extraClassDeclaration = commonDecl # [{
    bool isExpensive() { return true; }
    int64_t getCodeSize() { return 45; }
    int64_t getFlopsPerTerm() { return 16; }
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
  }];
}

// Tests of floats: the result is i1.
class Graph_Test<string mnemonic, string what> : Graph_Elementwise<mnemonic> {
  let summary = what;
  let extraClassDeclaration = commonDecl # [{
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
  }];
}
def Graph_IsNanOp : Graph_Test<"is_nan", "whether x is NaN"> {
  let floats = "std::isnan(x)";
  let arguments = (ins Graph_FloatTensor:$input);
}
def Graph_IsInfOp : Graph_Test<"is_inf", "whether x is infinite, of the chosen signs"> {
  let floats = "std::isinf(x) && (x > 0 ? getPositive() : getNegative())";
  let arguments = (ins Graph_FloatTensor:$input, BoolAttr:$positive, BoolAttr:$negative);
}

def Graph_CastOp : Graph_Elementwise<"cast"> {
  let range = "rangeOfNumbers(getInput(), x)";
  let moreDecl = linearDecl;
  let scalarDefinition = "";
  let wrapDefinition = "";
  let summary = "Conversion to another element type";
  let description = [{
    Float to integer truncates toward zero; to i1 means x != 0. `saturate`
    concerns 8-bit floats.
  }];
  let arguments = (ins Graph_Tensor:$input, TypeAttr:$to);
  let extraClassDeclaration = commonDecl # symbolicDecl # [{
    bool isOperandTypeFree(unsigned) { return true; }
  }];
  let hasFolder = 1;
}

def Graph_BitcastOp : Graph_Elementwise<"bitcast"> {
  let summary = "The same bits read as another element type of that width";
  let arguments = (ins Graph_Tensor:$input, TypeAttr:$to);
  let extraClassDeclaration = commonDecl # [{
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
  }];
}

// `codeSize` as of Graph_Unary; division of integers goes lane by lane.
class Graph_BinaryBase<string mnemonic, string what, list<Trait> traits = [], bit symbolic = 0,
                       Type operand = Graph_Tensor, int codeSize = 1, int integerCodeSize = codeSize>
    : Graph_Elementwise<mnemonic, traits> {
  let summary = what;
  let arguments = (ins operand:$lhs, operand:$rhs);
  code codeSizeDecl = [{
    int64_t getCodeSize() {
      return ::mlir::getElementTypeOrSelf(getLhs().getType()).isIntOrIndex()
                 ? }] # integerCodeSize # " : " # codeSize # [{;
    }
  }];
  let extraClassDeclaration = commonDecl # codeSizeDecl # !if(symbolic, symbolicDecl, [{
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
  }]);
  let extraClassDefinition = sharedDefinition # [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *,
        std::optional<::mlir::Location> loc, ::mlir::ValueRange operands, ::mlir::DictionaryAttr,
        ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return ::charonia::graph::inferBroadcast(loc, operands, /*elementFrom=*/0, types);
    }
  }];
}

class Graph_Binary<string mnemonic, string what, list<Trait> traits = [], bit symbolic = 0,
                   Type operand = Graph_Tensor, int codeSize = 1, int integerCodeSize = codeSize>
    : Graph_BinaryBase<mnemonic, what, !listconcat([SameOperandsElementType], traits), symbolic,
                       operand, codeSize, integerCodeSize>;

def Graph_AddOp : Graph_Binary<"add", "x + y", [Commutative], 1> {
  let cancels = 1;
  let range = "x + y";
  let moreDecl = linearDecl;
  let floats = "x + y";
  let integers = "wrap(uint64_t(x) + uint64_t(y))";
  let wraps = "true";
}
def Graph_SubOp : Graph_Binary<"sub", "x - y", [], 1> {
  let cancels = 1;
  let range = "x + -y";
  let moreDecl = linearDecl;
  let floats = "x - y";
  let integers = "wrap(uint64_t(x) - uint64_t(y))";
  let wraps = "true";
}
def Graph_MulOp : Graph_Binary<"mul", "x * y", [Commutative], 1> {
  let range = "x * y";
  let moreDecl = linearDecl;
  let floats = "x * y";
  let integers = "wrap(uint64_t(x) * uint64_t(y))";
  let wraps = "true";
}
def Graph_DivOp : Graph_Binary<"div", "x / y; integers truncate toward zero", [], 1, Graph_Tensor, 2, 100> {
  let range = "y.low > 0 || y.high < 0 ? x * RealRange{1 / y.high, 1 / y.low} : RealRange{}";
  let moreDecl = linearDecl;
  let floats = "x / y";
  let integers = "quotient(x, y)";
  let algebraic = "algebra.quotient(x, y)";
}
def Graph_ModOp : Graph_Binary<"mod", "remainder with the sign of y (integers and floats)", [], 1,
                              Graph_Tensor, 145, 110> {
  let cancels = 1;
  let floats = "modulo(x, y)";
  let integers = "modulo(x, y)";
  let algebraic = "algebra.modulo(x, y)";
}
def Graph_FmodOp : Graph_Binary<"fmod", "remainder with the sign of x, as C fmod", [], 0, Graph_Tensor,
                               140, 100> {
  let cancels = 1;
  let floats = "std::fmod(x, y)";
  let integers = "remainder(x, y)";
  let algebraic = "algebra.remainder(x, y)";
}
def Graph_PowOp : Graph_BinaryBase<"pow", "x to the y; the result has x's type; y may have another",
                                   [], 0, Graph_Tensor, 110> {
  let floats = [{std::pow(x, ::llvm::isa<::mlir::FloatType>(::mlir::getElementTypeOrSelf(getRhs()))
                               ? y : double(operands[1].integer))}];
  let extraClassDeclaration = commonDecl # codeSizeDecl # [{
    bool isOperandTypeFree(unsigned operand) { return operand == 1; }
    ::charonia::graph::SymbolicTensor evaluateSymbolic(
        ::llvm::ArrayRef<::charonia::graph::SymbolicTensor>) { return {}; }
  }];
}
def Graph_MaxOp : Graph_Binary<"max", "maximum; NaN wins", [Commutative], 1> {
  let range = "RealRange{std::max(x.low, y.low), std::max(x.high, y.high)}";
  let floats = "larger(x, y)";
  let integers = "std::max(x, y)";
  let algebraic = "algebra.larger(x, y)";
}
def Graph_MinOp : Graph_Binary<"min", "minimum; NaN wins", [Commutative], 1> {
  let range = "RealRange{std::min(x.low, y.low), std::min(x.high, y.high)}";
  let floats = "smaller(x, y)";
  let integers = "std::min(x, y)";
  let algebraic = "algebra.smaller(x, y)";
}
def Graph_AndOp : Graph_Binary<"and", "logical or bitwise and", [Commutative], 1, Graph_IntTensor> {
  let moreDecl = conditionsDecl;
  let integers = "x & y";
  let wraps = "true";
  let algebraic = "algebra.bitAnd(x, y, getLhs().getType())";
}
def Graph_OrOp : Graph_Binary<"or", "logical or bitwise or", [Commutative], 1, Graph_IntTensor> {
  let integers = "x | y";
  let wraps = "true";
  let algebraic = "algebra.bitOr(x, y, getLhs().getType())";
}
def Graph_XorOp : Graph_Binary<"xor", "logical or bitwise exclusive or", [Commutative], 1, Graph_IntTensor> {
  let integers = "x ^ y";
  let wraps = "true";
  let algebraic = "algebra.bitXor(x, y, getLhs().getType())";
}
def Graph_ShlOp : Graph_Binary<"shl", "x << y", [], 0, Graph_IntTensor> {
  let wraps = "operand == 0";
  let algebraic = "algebra.shiftLeft(x, y)";
}
def Graph_ShrOp : Graph_Binary<"shr", "x >> y, arithmetic for signed", [], 0, Graph_IntTensor> {
  let algebraic = "algebra.shiftRight(x, y)";
}

def Graph_Predicate : I32EnumAttr<"Predicate", "comparison", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::charonia::graph";
}

def Graph_CompareOp : Graph_Elementwise<"compare"> {
  let moreDecl = conditionsDecl;
  let scalarDefinition = "";
  let summary = "Comparison; the result is i1; NaN is unequal to all";
  let arguments = (ins Graph_Predicate:$predicate, Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = commonDecl # symbolicDecl # [{
    bool readsFullRange(unsigned) { return true; }
  }];
}

def Graph_SelectOp : Graph_Elementwise<"select"> {
  let range = "hull(operands[1], operands[2])";
  let wraps = "operand > 0";
  let scalarDefinition = "";
  let summary = "condition ? x : y";
  let arguments = (ins Graph_BoolTensor:$condition, Graph_Tensor:$lhs, Graph_Tensor:$rhs);
  let extraClassDeclaration = commonDecl # symbolicDecl;
  let hasFolder = 1;
}

#endif
