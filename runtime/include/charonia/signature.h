//===- signature.h - What an engine takes and gives -------------*- C++ -*-===//
//
// Shapes may depend on shape symbols: named integers, each with a range, that
// the shapes of the inputs determine at run time. A ShapeExpr is a dimension, a
// size in bytes or a grid as a function of these symbols.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_SIGNATURE_H
#define CHARONIA_SIGNATURE_H

#include "charonia/types.h"

namespace charonia {

/// A shape symbol: min <= value <= max, a multiple of divisor; opt is the value
/// that the engine was tuned for.
struct Symbol {
  std::string name;
  int64_t min = 1;
  int64_t opt = 1;
  int64_t max = 1;
  int64_t divisor = 1;

  friend bool operator==(const Symbol &, const Symbol &) = default;
};

/// An integer function of the shape symbols, as a postfix program; inside it
/// may compute in IEEE floats, as models do. A value type; the operators below
/// build larger expressions and fold constants.
///
///   auto n = ShapeExpr::symbol(0);
///   auto bytes = n * 768 * 4;          // 3072 * s0
///   auto tiles = ceilDiv(n, 64) * 12;
///   bytes.evaluate({{8}});             // 24576
class CHARONIA_API ShapeExpr {
public:
  /// The values are part of the file format.
  enum class Op : uint8_t {
    Const = 0,
    Symbol = 1,
    Add = 2,
    Sub = 3,
    Mul = 4,
    FloorDiv = 5,
    CeilDiv = 6,
    Mod = 7, ///< Result has the divisor's sign (floor semantics).
    Max = 8,
    Min = 9,
    TruncDiv = 10, ///< Rounds toward zero.
    // Of floats, held in double precision.
    FloatConst = 11,
    ToFloat = 12,  ///< Of an integer.
    ToSingle = 13, ///< Rounds to single precision.
    Truncate = 14, ///< To an integer, toward zero.
    FloatAdd = 15,
    FloatSub = 16,
    FloatMul = 17,
    FloatDiv = 18,
    FloatMax = 19,
    FloatMin = 20,
    Floor = 21,
    Ceil = 22,
    Round = 23, ///< To the even one of two that are as near.
    Sqrt = 24,
  };
  struct Term {
    Op op = Op::Const;
    /// Const: the number; FloatConst: its bits; Symbol: its index; else 0.
    int64_t value = 0;
    friend bool operator==(const Term &, const Term &) = default;
  };

  /// The constant 0.
  ShapeExpr() = default;
  /// Implicit, so that numbers and expressions mix.
  ShapeExpr(int64_t constant) {
    if (constant != 0)
      code.push_back({Op::Const, constant});
  }

  static ShapeExpr symbol(unsigned index);
  /// Takes the program as it is; check() says whether it is well formed. No
  /// terms are the constant 0.
  static ShapeExpr fromTerms(std::vector<Term> terms);
  static ShapeExpr binary(Op op, const ShapeExpr &lhs, const ShapeExpr &rhs);

  /// At least one.
  std::span<const Term> terms() const {
    static constexpr Term zero;
    return code.empty() ? std::span(&zero, 1) : std::span(code);
  }
  std::optional<int64_t> constantValue() const;
  bool isConstant() const { return constantValue().has_value(); }

  /// The value for the given symbol values; an error on overflow of 64 bits, on
  /// division by a number < 1 (TruncDiv: by 0), on a symbol out of the span or
  /// a malformed program.
  Result<int64_t> evaluate(std::span<const int64_t> symbols) const;

  /// Checks the program: stack discipline, operators, that integers and floats
  /// are not mixed up, symbol indices, size.
  Status check(size_t numSymbols) const;

  /// Infix text, e.g. "(batch * 768)"; unnamed symbols print as s0, s1, ...
  std::string str(std::span<const Symbol> symbols = {}) const;

  friend bool operator==(const ShapeExpr &, const ShapeExpr &) = default;

private:
  /// Empty for 0, the one expression of which engines hold many.
  std::vector<Term> code;
};

inline ShapeExpr operator+(const ShapeExpr &a, const ShapeExpr &b) {
  return ShapeExpr::binary(ShapeExpr::Op::Add, a, b);
}
inline ShapeExpr operator-(const ShapeExpr &a, const ShapeExpr &b) {
  return ShapeExpr::binary(ShapeExpr::Op::Sub, a, b);
}
inline ShapeExpr operator*(const ShapeExpr &a, const ShapeExpr &b) {
  return ShapeExpr::binary(ShapeExpr::Op::Mul, a, b);
}
inline ShapeExpr floorDiv(const ShapeExpr &a, const ShapeExpr &b) {
  return ShapeExpr::binary(ShapeExpr::Op::FloorDiv, a, b);
}
inline ShapeExpr ceilDiv(const ShapeExpr &a, const ShapeExpr &b) {
  return ShapeExpr::binary(ShapeExpr::Op::CeilDiv, a, b);
}
inline ShapeExpr mod(const ShapeExpr &a, const ShapeExpr &b) {
  return ShapeExpr::binary(ShapeExpr::Op::Mod, a, b);
}
inline ShapeExpr max(const ShapeExpr &a, const ShapeExpr &b) {
  return ShapeExpr::binary(ShapeExpr::Op::Max, a, b);
}
inline ShapeExpr min(const ShapeExpr &a, const ShapeExpr &b) {
  return ShapeExpr::binary(ShapeExpr::Op::Min, a, b);
}

/// One input or output. Dense, row-major, in the model's own type and order.
struct TensorSpec {
  std::string name;
  DType dtype = DType::Float32;
  std::vector<ShapeExpr> dims;

  friend bool operator==(const TensorSpec &, const TensorSpec &) = default;
};

/// What must hold between sizes beyond the range of each symbol: the kernels
/// were made on the assumption.
struct Constraint {
  /// The values are part of the file format.
  enum class Relation : uint8_t {
    Equal = 1,   ///< left == right.
    Divides = 2, ///< right is a multiple of left, which is at least 1.
    AtLeast = 3, ///< left >= right.
    Differs = 4, ///< left != right.
  };
  Relation relation = Relation::Equal;
  ShapeExpr left, right;
  /// Who needs it, to end a sentence: "as MatMul 'fc1' multiplies over them".
  /// May be empty.
  std::string reason;

  friend bool operator==(const Constraint &, const Constraint &) = default;
};

struct CHARONIA_API Signature {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<Symbol> symbols;
  std::vector<Constraint> constraints;

  friend bool operator==(const Signature &, const Signature &) = default;

  /// Index of the named input or output; the error lists the names there are.
  Result<size_t> findInput(std::string_view name) const;
  Result<size_t> findOutput(std::string_view name) const;

  /// The symbols' values from one concrete shape per input (in the order of
  /// `inputs`). Checks ranks, fixed dimensions, agreement between inputs,
  /// ranges, divisors and constraints; messages name the inputs and the shape
  /// that would be right.
  Result<std::vector<int64_t>>
  solveSymbols(std::span<const std::vector<int64_t>> inputShapes) const;

  /// Values for all symbols where just some inputs have a shape: what these and
  /// the constraints that are equations tell, and for the others the sizes that
  /// the engine was tuned for. Whether they fit is for solveSymbols() to say.
  std::vector<int64_t> completeSymbols(
      std::span<const std::optional<std::vector<int64_t>>> inputShapes) const;

  /// The concrete shape of `spec` for these symbol values.
  Result<std::vector<int64_t>>
  evaluateShape(const TensorSpec &spec,
                std::span<const int64_t> symbolValues) const;

  /// "float32 [batch, 3, 224, 224]".
  std::string typeString(const TensorSpec &spec) const;
  /// "batch in 1..64": the ranges of the symbols that `spec` uses; may be
  /// empty. Very long lists are cut.
  std::string rangeString(const TensorSpec &spec) const;
  /// For each constraint "dimension 1 of a (m) = dimension 0 of b (n), as
  /// MatMul 'fc1' multiplies over them".
  std::vector<std::string> constraintStrings() const;
};

} // namespace charonia

#endif // CHARONIA_SIGNATURE_H
