#include "TileInterpreter.h"
#include "codegen/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

using namespace mlir;
using namespace charonia;
using llvm::APFloat;

namespace {

float decode(const llvm::fltSemantics &semantics, uint16_t bits) {
  bool lost;
  APFloat value(semantics, llvm::APInt(16, bits));
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
  return value.convertToFloat();
}
uint16_t encode(const llvm::fltSemantics &semantics, double number) {
  bool lost;
  APFloat value(number);
  value.convert(semantics, APFloat::rmNearestTiesToEven, &lost);
  return value.bitcastToAPInt().getZExtValue();
}

/// One element of any type: floats are held in f, the rest in i, sign-extended
/// from their width (i1 is 0 or 1).
struct Element {
  double f = 0;
  int64_t i = 0;
};

struct Tile {
  SmallVector<int64_t> shape;
  std::vector<Element> data; // one for a scalar
};

int64_t floorDiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> dims,
                 ArrayRef<int64_t> symbols) {
  if (auto e = dyn_cast<AffineConstantExpr>(expr))
    return e.getValue();
  if (auto e = dyn_cast<AffineDimExpr>(expr))
    return dims[e.getPosition()];
  if (auto e = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[e.getPosition()];
  auto e = cast<AffineBinaryOpExpr>(expr);
  int64_t a = evaluate(e.getLHS(), dims, symbols),
          b = evaluate(e.getRHS(), dims, symbols);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::FloorDiv:
    return floorDiv(a, b);
  case AffineExprKind::CeilDiv:
    return -floorDiv(-a, b);
  default:
    return a - b * floorDiv(a, b);
  }
}

unsigned widthOf(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

/// The value that an element of this type can hold.
Element rounded(Element e, Type type) {
  if (type.isF32())
    e.f = float(e.f);
  else if (type.isF16())
    e.f = tile::halfToFloat(tile::floatToHalf(e.f));
  else if (type.isBF16())
    e.f = tile::bfloatToFloat(tile::floatToBfloat(e.f));
  else if (!isa<FloatType>(type)) {
    unsigned width = widthOf(type);
    if (width == 1)
      e.i &= 1;
    else if (width < 64)
      e.i = int64_t(uint64_t(e.i) << (64 - width)) >> (64 - width);
  }
  return e;
}

uint64_t unsignedOf(int64_t value, unsigned width) {
  return width >= 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

class Interpreter {
public:
  Interpreter(func::FuncOp kernel, ArrayRef<tile::InterpreterBuffer> buffers)
      : buffers(buffers) {
    (void)kernel;
  }

  std::string error;
  std::map<mlir::detail::ValueImpl *, Tile> values;
  std::map<mlir::detail::ValueImpl *, unsigned> bufferIndex;
  int64_t programId = 0;
  /// Another program instance goes on with what this one has.
  bool ended = false;
  /// What instances of clusters gave the others; one exchange is known.
  std::map<int64_t, std::vector<Tile>> *exchanged = nullptr;
  /// Of a cluster: up to where its instances wait for each other.
  bool isFirstWalk = false;

  Tile &get(Value value) { return values[value.getImpl()]; }
  int64_t integer(Value value) { return get(value).data[0].i; }
  void set(Value value, Tile tile) {
    values[value.getImpl()] = std::move(tile);
  }
  void fail(Operation *op, const llvm::Twine &message) {
    if (error.empty()) {
      llvm::raw_string_ostream os(error);
      os << message << " in " << *op;
    }
  }

  void run(Block &block) {
    for (Operation &op : block) {
      if (!error.empty() || ended)
        return;
      execute(&op);
    }
  }

private:
  static SmallVector<int64_t> shapeOf(Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile ? SmallVector<int64_t>(tile.getShape())
                : SmallVector<int64_t>();
  }
  static int64_t count(ArrayRef<int64_t> shape) {
    int64_t n = 1;
    for (int64_t extent : shape)
      n *= extent;
    return n;
  }
  static SmallVector<int64_t> coordinates(int64_t position,
                                          ArrayRef<int64_t> shape) {
    SmallVector<int64_t> at(shape.size());
    for (size_t i = shape.size(); i-- > 0;) {
      at[i] = position % shape[i];
      position /= shape[i];
    }
    return at;
  }
  /// Position in a tile that broadcasts to where these coordinates belong.
  static int64_t position(ArrayRef<int64_t> at, ArrayRef<int64_t> shape) {
    int64_t p = 0;
    for (size_t i = 0; i < shape.size(); ++i)
      p = p * shape[i] + (shape[i] == 1 ? 0 : at[i]);
    return p;
  }

  SmallVector<int64_t> symbolsAt(ValueRange symbols, ArrayRef<int64_t> at) {
    SmallVector<int64_t> own;
    for (Value symbol : symbols) {
      Tile &tile = get(symbol);
      own.push_back(
          tile.data[tile.shape.empty() ? 0 : position(at, tile.shape)].i);
    }
    return own;
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  template <typename Op>
  bool inside(Op op, ArrayRef<int64_t> at, ArrayRef<int64_t> symbols,
              int64_t &offset) {
    offset = 0;
    for (int64_t check : op.getChecks()) {
      int64_t c = evaluate(op.getMap().getResult(check), at, symbols);
      int64_t e = evaluate(op.getShape().getResult(check), {}, symbols);
      if (c < 0 || c >= e)
        return false;
    }
    for (int64_t i = 0; i < (int64_t)op.getRank(); ++i) {
      int64_t c = evaluate(op.getMap().getResult(i), at, symbols);
      int64_t e = evaluate(op.getShape().getResult(i), {}, symbols);
      if (c < 0 || c >= e)
        fail(op, "coordinate " + llvm::Twine(i) + " is " + llvm::Twine(c) +
                     " of " + llvm::Twine(e));
      offset = offset * e + c;
    }
    auto index = bufferIndex[Value(op.getBuffer()).getImpl()];
    if (offset < 0 || offset >= (int64_t)buffers[index].elements)
      fail(op, "offset " + llvm::Twine(offset) + " outside the buffer");
    return error.empty();
  }

  Element read(Value buffer, int64_t offset) {
    Type type = cast<tile::BufferType>(buffer.getType()).getElementType();
    char *data =
        static_cast<char *>(buffers[bufferIndex[buffer.getImpl()]].data);
    Element e;
    auto as = [&]<typename T>(T) {
      T value;
      memcpy(&value, data + offset * sizeof(T), sizeof(T));
      return value;
    };
    if (type.isF64())
      e.f = as(double());
    else if (type.isF32())
      e.f = as(float());
    else if (type.isF16())
      e.f = tile::halfToFloat(as(uint16_t()));
    else if (type.isBF16())
      e.f = tile::bfloatToFloat(as(uint16_t()));
    else
      switch (widthOf(type)) {
      case 64:
        e.i = as(int64_t());
        break;
      case 32:
        e.i = as(int32_t());
        break;
      case 16:
        e.i = as(int16_t());
        break;
      case 8:
        e.i = as(int8_t());
        break;
      default:
        e.i = as(uint8_t()) & 1;
      }
    return e;
  }

  void write(Value buffer, int64_t offset, Element e) {
    Type type = cast<tile::BufferType>(buffer.getType()).getElementType();
    char *data =
        static_cast<char *>(buffers[bufferIndex[buffer.getImpl()]].data);
    auto as = [&]<typename T>(T value) {
      memcpy(data + offset * sizeof(T), &value, sizeof(T));
    };
    if (type.isF64())
      as(e.f);
    else if (type.isF32())
      as(float(e.f));
    else if (type.isF16())
      as(tile::floatToHalf(e.f));
    else if (type.isBF16())
      as(tile::floatToBfloat(e.f));
    else
      switch (widthOf(type)) {
      case 64:
        as(int64_t(e.i));
        break;
      case 32:
        as(int32_t(e.i));
        break;
      case 16:
        as(int16_t(e.i));
        break;
      default:
        as(int8_t(e.i));
      }
  }

  //===--------------------------------------------------------------------===//
  // Elementwise operators
  //===--------------------------------------------------------------------===//

  Element elementwise(Operation *op, ArrayRef<Element> v, Type from, Type to) {
    using namespace arith;
    Element x = v.size() > 0 ? v[0] : Element(),
            y = v.size() > 1 ? v[1] : Element(),
            z = v.size() > 2 ? v[2] : Element(), r;
    unsigned width = from ? (isa<FloatType>(from) ? 64 : widthOf(from)) : 64;
    uint64_t ux = unsignedOf(x.i, width), uy = unsignedOf(y.i, width);
    auto number = [&](double f) {
      r.f = f;
      return r;
    };
    auto whole = [&](int64_t i) {
      r.i = i;
      return r;
    };
    bool f32 = to.isF32();
    // Elements outside a buffer are zeros, and what is divided by them is not
    // used.
    if (isa<DivSIOp, DivUIOp, RemSIOp, RemUIOp, CeilDivSIOp, CeilDivUIOp,
            FloorDivSIOp>(op) &&
        uy == 0)
      return r;
    auto f = [&](auto function) { return number(function((long double)x.f)); };
    return llvm::TypeSwitch<Operation *, Element>(op)
        .Case<AddFOp>([&](auto) {
          return number(f32 ? float(x.f) + float(y.f) : x.f + y.f);
        })
        .Case<SubFOp>([&](auto) {
          return number(f32 ? float(x.f) - float(y.f) : x.f - y.f);
        })
        .Case<MulFOp>([&](auto) {
          return number(f32 ? float(x.f) * float(y.f) : x.f * y.f);
        })
        .Case<DivFOp>([&](auto) {
          return number(f32 ? float(x.f) / float(y.f) : x.f / y.f);
        })
        .Case<RemFOp>([&](auto) { return number(std::fmod(x.f, y.f)); })
        .Case<NegFOp>([&](auto) { return number(-x.f); })
        .Case<MaximumFOp>([&](auto) {
          return number(
              std::isnan(x.f) || std::isnan(y.f) ? NAN : std::max(x.f, y.f));
        })
        .Case<MinimumFOp>([&](auto) {
          return number(
              std::isnan(x.f) || std::isnan(y.f) ? NAN : std::min(x.f, y.f));
        })
        .Case<MaxNumFOp>([&](auto) { return number(std::fmax(x.f, y.f)); })
        .Case<MinNumFOp>([&](auto) { return number(std::fmin(x.f, y.f)); })
        .Case<CmpFOp>([&](auto op) {
          return whole(
              applyCmpPredicate(op.getPredicate(), APFloat(x.f), APFloat(y.f)));
        })
        .Case<CmpIOp>([&](auto op) {
          return whole(
              applyCmpPredicate(op.getPredicate(), llvm::APInt(64, x.i, true),
                                llvm::APInt(64, y.i, true)) &&
                      unsigned(op.getPredicate()) < 6
                  ? 1
              : unsigned(op.getPredicate()) < 6
                  ? 0
                  : applyCmpPredicate(op.getPredicate(), llvm::APInt(64, ux),
                                      llvm::APInt(64, uy)));
        })
        .Case<SelectOp>([&](auto) { return x.i ? y : z; })
        .Case<ExtFOp, TruncFOp>([&](auto) { return x; })
        .Case<SIToFPOp>(
            [&](auto) { return number(f32 ? float(x.i) : double(x.i)); })
        .Case<UIToFPOp>(
            [&](auto) { return number(f32 ? float(ux) : double(ux)); })
        .Case<FPToSIOp>([&](auto) { return whole(int64_t(x.f)); })
        .Case<FPToUIOp>([&](auto) {
          return whole(x.f >= 0x1p63 ? int64_t(uint64_t(x.f)) : int64_t(x.f));
        })
        .Case<BitcastOp>([&](auto) {
          uint64_t bits = from.isF32()    ? std::bit_cast<uint32_t>(float(x.f))
                          : from.isF64()  ? std::bit_cast<uint64_t>(x.f)
                          : from.isF16()  ? tile::floatToHalf(x.f)
                          : from.isBF16() ? tile::floatToBfloat(x.f)
                                          : unsignedOf(x.i, width);
          return to.isF32()    ? number(std::bit_cast<float>(uint32_t(bits)))
                 : to.isF64()  ? number(std::bit_cast<double>(bits))
                 : to.isF16()  ? number(tile::halfToFloat(bits))
                 : to.isBF16() ? number(tile::bfloatToFloat(bits))
                               : whole(bits);
        })
        .Case<ExtSIOp>([&](auto) { return whole(width == 1 ? -x.i : x.i); })
        .Case<IndexCastOp, TruncIOp>([&](auto) { return whole(x.i); })
        .Case<ExtUIOp, IndexCastUIOp>([&](auto) { return whole(ux); })
        .Case<AddIOp>([&](auto) { return whole(uint64_t(x.i) + y.i); })
        .Case<SubIOp>([&](auto) { return whole(uint64_t(x.i) - y.i); })
        .Case<MulIOp>([&](auto) { return whole(uint64_t(x.i) * y.i); })
        .Case<DivSIOp>([&](auto) { return whole(x.i / y.i); })
        .Case<DivUIOp>([&](auto) { return whole(ux / uy); })
        .Case<RemSIOp>([&](auto) { return whole(x.i % y.i); })
        .Case<RemUIOp>([&](auto) { return whole(ux % uy); })
        .Case<CeilDivSIOp>([&](auto) { return whole(-floorDiv(-x.i, y.i)); })
        .Case<CeilDivUIOp>(
            [&](auto) { return whole(ux / uy + (ux % uy != 0)); })
        .Case<FloorDivSIOp>([&](auto) { return whole(floorDiv(x.i, y.i)); })
        .Case<AndIOp>([&](auto) { return whole(x.i & y.i); })
        .Case<OrIOp>([&](auto) { return whole(x.i | y.i); })
        .Case<XOrIOp>([&](auto) { return whole(x.i ^ y.i); })
        .Case<ShLIOp>([&](auto) { return whole(ux << uy); })
        .Case<ShRSIOp>([&](auto) { return whole(x.i >> uy); })
        .Case<ShRUIOp>([&](auto) { return whole(ux >> uy); })
        .Case<MaxSIOp>([&](auto) { return whole(std::max(x.i, y.i)); })
        .Case<MinSIOp>([&](auto) { return whole(std::min(x.i, y.i)); })
        .Case<MaxUIOp>([&](auto) { return whole(std::max(ux, uy)); })
        .Case<MinUIOp>([&](auto) { return whole(std::min(ux, uy)); })
        .Case<math::AbsFOp>([&](auto) { return number(std::fabs(x.f)); })
        .Case<math::AbsIOp>(
            [&](auto) { return whole(x.i < 0 ? 0 - uint64_t(x.i) : x.i); })
        .Case<math::CopySignOp>(
            [&](auto) { return number(std::copysign(x.f, y.f)); })
        .Case<math::FmaOp>([&](auto) {
          return number(f32 ? std::fma(float(x.f), float(y.f), float(z.f))
                            : std::fma(x.f, y.f, z.f));
        })
        .Case<math::SqrtOp>(
            [&](auto) { return f([](auto a) { return std::sqrt(a); }); })
        .Case<math::RsqrtOp>(
            [&](auto) { return f([](auto a) { return 1 / std::sqrt(a); }); })
        .Case<math::FloorOp>([&](auto) { return number(std::floor(x.f)); })
        .Case<math::CeilOp>([&](auto) { return number(std::ceil(x.f)); })
        .Case<math::TruncOp>([&](auto) { return number(std::trunc(x.f)); })
        .Case<math::RoundEvenOp>(
            [&](auto) { return number(std::nearbyint(x.f)); })
        .Case<math::RoundOp>([&](auto) { return number(std::round(x.f)); })
        .Case<math::ExpOp>(
            [&](auto) { return f([](auto a) { return std::exp(a); }); })
        .Case<math::Exp2Op>(
            [&](auto) { return f([](auto a) { return std::exp2(a); }); })
        .Case<math::LogOp>(
            [&](auto) { return f([](auto a) { return std::log(a); }); })
        .Case<math::TanhOp>(
            [&](auto) { return f([](auto a) { return std::tanh(a); }); })
        .Case<math::ErfOp>(
            [&](auto) { return f([](auto a) { return std::erf(a); }); })
        .Case<math::ErfcOp>(
            [&](auto) { return f([](auto a) { return std::erfc(a); }); })
        .Case<math::SinOp>(
            [&](auto) { return f([](auto a) { return std::sin(a); }); })
        .Case<math::CosOp>(
            [&](auto) { return f([](auto a) { return std::cos(a); }); })
        .Case<math::PowFOp>([&](auto) {
          return number(std::pow((long double)x.f, (long double)y.f));
        })
        .Default([&](Operation *op) {
          fail(op, "the interpreter does not know this operator");
          return r;
        });
  }

  Element constantElement(Attribute attr) {
    Element e;
    if (auto number = dyn_cast<FloatAttr>(attr))
      e.f = number.getValueAsDouble();
    else {
      llvm::APInt value = cast<IntegerAttr>(attr).getValue();
      e.i = value.getBitWidth() == 1 ? value.getZExtValue()
                                     : value.getSExtValue();
    }
    return e;
  }

  //===--------------------------------------------------------------------===//
  // Operators
  //===--------------------------------------------------------------------===//

  void execute(Operation *op) {
    SmallVector<int64_t> shape = op->getNumResults()
                                     ? shapeOf(op->getResult(0).getType())
                                     : SmallVector<int64_t>();
    auto each = [&](auto element) {
      Tile result{shape, {}};
      for (int64_t p = 0; p < count(shape) && error.empty(); ++p)
        result.data.push_back(element(p, coordinates(p, shape)));
      set(op->getResult(0), std::move(result));
    };
    llvm::TypeSwitch<Operation *>(op)
        .Case<func::ReturnOp, scf::YieldOp, tile::YieldOp>([](auto) {})
        .Case<tile::ProgramIdOp>([&](auto op) {
          set(op.getResult(), {{}, {Element{0, programId}}});
        })
        .Case<arith::ConstantOp>([&](auto op) {
          auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
          if (!dense)
            return set(op.getResult(), {{}, {constantElement(op.getValue())}});
          auto values = dense.template getValues<Attribute>();
          each([&](int64_t p, ArrayRef<int64_t>) {
            return constantElement(values[p]);
          });
        })
        .Case<tile::LoadOp>([&](auto op) {
          each([&](int64_t, ArrayRef<int64_t> at) {
            int64_t offset;
            return inside(op, at, symbolsAt(op.getSymbols(), at), offset)
                       ? read(op.getBuffer(), offset)
                       : Element();
          });
        })
        .Case<tile::StoreOp>([&](auto op) {
          Tile &value = get(op.getValue());
          for (int64_t p = 0; p < (int64_t)value.data.size(); ++p) {
            SmallVector<int64_t> at = coordinates(p, value.shape);
            int64_t offset;
            if (inside(op, at, symbolsAt(op.getSymbols(), at), offset))
              write(op.getBuffer(), offset, value.data[p]);
          }
        })
        .Case<tile::PrefetchOp>([](auto) {})
        .Case<tile::SplitSumOp>([&](auto op) { splitSum(op); })
        .Case<tile::ExchangeOp>([&](auto op) { exchange(op); })
        .Case<tile::IndexOp>([&](auto op) {
          each([&](int64_t, ArrayRef<int64_t> at) {
            return Element{0, evaluate(op.getMap().getResult(0), at,
                                       symbolsAt(op.getSymbols(), at))};
          });
        })
        .Case<tile::InBoundsOp>([&](auto op) {
          each([&](int64_t, ArrayRef<int64_t> at) {
            SmallVector<int64_t> symbols = symbolsAt(op.getSymbols(), at);
            bool in = true;
            for (auto [c, e] : llvm::zip(op.getMap().getResults(),
                                         op.getShape().getResults())) {
              int64_t value = evaluate(c, at, symbols);
              in &= value >= 0 && value < evaluate(e, {}, symbols);
            }
            return Element{0, in};
          });
        })
        .Case<tile::SplatOp>([&](auto op) {
          Element e = get(op.getValue()).data[0];
          each([&](int64_t, ArrayRef<int64_t>) { return e; });
        })
        .Case<tile::BroadcastOp>([&](auto op) {
          Tile &input = get(op.getInput());
          each([&](int64_t, ArrayRef<int64_t> at) {
            SmallVector<int64_t> own;
            for (int64_t axis : op.getAxes())
              own.push_back(at[axis]);
            return input.data[position(own, input.shape)];
          });
        })
        .Case<tile::SplitAxisOp, tile::JoinAxesOp>([&](auto op) {
          Tile &input = get(op.getInput());
          each([&](int64_t p, ArrayRef<int64_t>) { return input.data[p]; });
        })
        .Case<tile::TransposeOp>([&](auto op) {
          Tile &input = get(op.getInput());
          each([&](int64_t, ArrayRef<int64_t> at) {
            SmallVector<int64_t> own(at.size());
            for (auto [i, axis] : llvm::enumerate(op.getPermutation()))
              own[axis] = at[i];
            return input.data[position(own, input.shape)];
          });
        })
        .Case<tile::DotOp>([&](auto op) {
          Tile &a = get(op.getLhs()), &b = get(op.getRhs()),
               &c = get(op.getAccumulator());
          Type type = cast<RankedTensorType>(op.getType()).getElementType();
          int64_t n = shape[1], k = a.shape[1];
          each([&](int64_t p, ArrayRef<int64_t> at) {
            Element sum = c.data[p];
            for (int64_t l = 0; l < k; ++l) {
              sum.f += a.data[at[0] * k + l].f * b.data[l * n + at[1]].f;
              sum.i += a.data[at[0] * k + l].i * b.data[l * n + at[1]].i;
            }
            return rounded(sum, type);
          });
        })
        .Case<tile::ReduceOp>([&](auto op) { reduce(op); })
        .Case<tile::ScanOp>([&](auto op) { scan(op); })
        .Case<tile::SortOp>([&](auto op) { sort(op); })
        .Case<scf::ForOp>([&](auto op) { loop(op); })
        .Case<scf::IfOp>([&](auto op) {
          Region &region = integer(op.getCondition()) ? op.getThenRegion()
                                                      : op.getElseRegion();
          if (region.empty())
            return;
          run(region.front());
          for (auto [result, value] :
               llvm::zip(op.getResults(),
                         region.front().getTerminator()->getOperands()))
            set(result, get(value));
        })
        .Default([&](Operation *op) {
          Type to = getElementTypeOrSelf(op->getResult(0).getType());
          Type from = op->getNumOperands()
                          ? getElementTypeOrSelf(op->getOperand(0).getType())
                          : to;
          SmallVector<Tile *> operands;
          for (Value operand : op->getOperands())
            operands.push_back(&get(operand));
          each([&](int64_t p, ArrayRef<int64_t>) {
            SmallVector<Element> v;
            for (Tile *tile : operands)
              v.push_back(tile->data[tile->data.size() == 1 ? 0 : p]);
            return rounded(elementwise(op, v, from, to), to);
          });
        });
  }

  void reduce(tile::ReduceOp op) {
    Block &block = op.getCombiner().front();
    SmallVector<int64_t> shape = shapeOf(op.getResult(0).getType());
    SmallVector<int64_t> from = shapeOf(op.getInputs()[0].getType());
    int64_t axis = op.getAxis();
    SmallVector<Tile> results(op.getNumResults(), Tile{shape, {}});
    for (int64_t p = 0; p < count(shape); ++p) {
      SmallVector<int64_t> at = coordinates(p, shape);
      at.insert(at.begin() + axis, 0);
      SmallVector<Element> sum;
      for (at[axis] = 0; at[axis] < from[axis]; ++at[axis]) {
        SmallVector<Element> next;
        for (Value input : op.getInputs())
          next.push_back(get(input).data[position(at, from)]);
        if (sum.empty()) {
          sum = next;
          continue;
        }
        for (auto [i, e] : llvm::enumerate(sum))
          set(block.getArgument(i), {{}, {e}});
        for (auto [i, e] : llvm::enumerate(next))
          set(block.getArgument(sum.size() + i), {{}, {e}});
        run(block);
        for (auto [e, value] :
             llvm::zip(sum, block.getTerminator()->getOperands()))
          e = get(value).data[0];
      }
      for (auto [tile, e] : llvm::zip(results, sum))
        tile.data.push_back(e);
    }
    for (auto [result, tile] : llvm::zip(op.getResults(), results))
      set(result, tile);
  }

  void scan(tile::ScanOp op) {
    Block &block = op.getCombiner().front();
    Tile &input = get(op.getInput());
    Tile result{input.shape, std::vector<Element>(input.data.size())},
        total = get(op.getCarry());
    int64_t axis = op.getAxis(), length = input.shape[axis];
    for (int64_t p = 0; p < (int64_t)total.data.size(); ++p) {
      SmallVector<int64_t> at = coordinates(p, total.shape);
      at.insert(at.begin() + axis, 0);
      for (at[axis] = 0; at[axis] < length; ++at[axis]) {
        int64_t here = position(at, input.shape);
        set(block.getArgument(0), {{}, {total.data[p]}});
        set(block.getArgument(1), {{}, {input.data[here]}});
        run(block);
        total.data[p] = get(block.getTerminator()->getOperand(0)).data[0];
        result.data[here] = total.data[p];
      }
    }
    set(op.getResult(), result);
    set(op.getTotal(), total);
  }

  void sort(tile::SortOp op) {
    int64_t first = integer(op.getFirst());
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < integer(op.getCount()); ++i)
      elements.push_back(read(op.getBuffer(), first + i).i);
    std::ranges::sort(elements);
    for (auto [i, element] : llvm::enumerate(elements))
      write(op.getBuffer(), first + i, {0, element});
  }

  void splitSum(tile::SplitSumOp op) {
    Tile &value = get(op.getValue());
    int64_t size = value.data.size(), tile = integer(op.getTile()),
            parts = op.getParts();
    for (int64_t p = 0; p < size; ++p)
      write(op.getScratch(), (tile * parts + integer(op.getPart())) * size + p,
            value.data[p]);
    if (op.getSharedAxis() && isFirstWalk) {
      ended = true;
      return;
    }
    if (op.getSharedAxis())
      return addShare(op);
    Element arrived = read(op.getCounters(), tile);
    arrived.i = (arrived.i + 1) % parts;
    write(op.getCounters(), tile, arrived);
    ended = arrived.i != 0;
    Tile sum{value.shape, std::vector<Element>(size)};
    for (int64_t part = 0; part < parts && !ended; ++part)
      for (int64_t p = 0; p < size; ++p)
        sum.data[p].f =
            float(sum.data[p].f +
                  read(op.getScratch(), (tile * parts + part) * size + p).f);
    set(op.getResult(), sum);
  }

  /// This part's share of the sum; elsewhere what nobody may use.
  void addShare(tile::SplitSumOp op) {
    Tile &value = get(op.getValue());
    int64_t size = value.data.size(), tile = integer(op.getTile()),
            parts = op.getParts(), axis = *op.getSharedAxis(), inner = 1;
    for (int64_t extent : ArrayRef(value.shape).drop_front(axis + 1))
      inner *= extent;
    Tile sum{value.shape, std::vector<Element>(size)};
    for (int64_t p = 0; p < size; ++p) {
      int64_t at = p / inner % value.shape[axis];
      if (at * parts / value.shape[axis] != integer(op.getPart()))
        sum.data[p].f = std::numeric_limits<float>::quiet_NaN();
      for (int64_t part = 0; part < parts; ++part)
        sum.data[p].f =
            float(sum.data[p].f +
                  read(op.getScratch(), (tile * parts + part) * size + p).f);
    }
    set(op.getResult(), sum);
  }

  /// In the first walk each gives its tiles, and all are there in the second.
  void exchange(tile::ExchangeOp op) {
    if (isFirstWalk) {
      for (Value input : op.getInputs())
        (*exchanged)[programId].push_back(get(input));
      ended = true;
      return;
    }
    int64_t parts = op.getParts(), first = programId / parts * parts;
    unsigned next = 0;
    for (int64_t part = 0; part < parts; ++part)
      for (const Tile &tile : (*exchanged)[first + part])
        set(op.getResult(next++), tile);
  }

  void loop(scf::ForOp op) {
    SmallVector<Tile> carried;
    for (Value init : op.getInitArgs())
      carried.push_back(get(init));
    int64_t end = integer(op.getUpperBound()), step = integer(op.getStep());
    for (int64_t i = integer(op.getLowerBound()); i < end && error.empty();
         i += step) {
      set(op.getInductionVar(), {{}, {Element{0, i}}});
      for (auto [argument, tile] : llvm::zip(op.getRegionIterArgs(), carried))
        set(argument, tile);
      run(*op.getBody());
      for (auto [tile, value] : llvm::zip(carried, op.getYieldedValues()))
        tile = get(value);
    }
    for (auto [result, tile] : llvm::zip(op.getResults(), carried))
      set(result, tile);
  }

  ArrayRef<tile::InterpreterBuffer> buffers;
};

} // namespace

float tile::halfToFloat(uint16_t bits) {
  return decode(APFloat::IEEEhalf(), bits);
}
uint16_t tile::floatToHalf(double value) {
  return encode(APFloat::IEEEhalf(), value);
}
float tile::bfloatToFloat(uint16_t bits) {
  return decode(APFloat::BFloat(), bits);
}
uint16_t tile::floatToBfloat(double value) {
  return encode(APFloat::BFloat(), value);
}

std::string tile::interpret(func::FuncOp kernel,
                            ArrayRef<InterpreterBuffer> buffers,
                            ArrayRef<int64_t> symbols, int64_t begin,
                            int64_t end) {
  std::map<int64_t, std::vector<Tile>> exchanged;
  auto runInstance = [&](int64_t instance, bool isFirstWalk) {
    Interpreter interpreter(kernel, buffers);
    interpreter.exchanged = &exchanged;
    interpreter.programId = instance;
    interpreter.isFirstWalk = isFirstWalk;
    unsigned buffer = 0, symbol = 0;
    for (BlockArgument argument : kernel.getArguments()) {
      if (isa<BufferType>(argument.getType()))
        interpreter.bufferIndex[Value(argument).getImpl()] = buffer++;
      else
        interpreter.set(argument, {{}, {Element{0, symbols[symbol++]}}});
    }
    interpreter.run(kernel.getBody().front());
    return interpreter.error;
  };
  bool inClusters = false;
  kernel.walk([&](SplitSumOp sum) { inClusters |= bool(sum.getSharedAxis()); });
  kernel.walk([&](ExchangeOp) { inClusters = true; });
  std::string error;
  for (bool isFirstWalk : {true, false})
    for (int64_t i = begin; i < end && error.empty(); ++i)
      if (inClusters || !isFirstWalk)
        error = runInstance(i, isFirstWalk);
  return error;
}
