#include "codegen/gpu/ir/SimtDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace charonia;
using namespace charonia::simt;

#include "codegen/gpu/ir/SimtDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "codegen/gpu/ir/SimtAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "codegen/gpu/ir/SimtTypes.cpp.inc"
#define GET_OP_CLASSES
#include "codegen/gpu/ir/SimtOps.cpp.inc"

namespace {
/// Layouts are long: they are printed once, as #layout, #layout1, ...
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<LayoutAttr>(attribute))
      return AliasResult::NoAlias;
    os << "layout";
    return AliasResult::FinalAlias;
  }
};
} // namespace

void SimtDialect::initialize() {
  addInterfaces<Aliases>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "codegen/gpu/ir/SimtAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "codegen/gpu/ir/SimtTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "codegen/gpu/ir/SimtOps.cpp.inc"
      >();
}

const LinearLayout &charonia::simt::layoutOf(Type tensor) {
  return cast<LayoutAttr>(cast<RankedTensorType>(tensor).getEncoding())
      .getLayout();
}

RankedTensorType charonia::simt::withLayout(RankedTensorType type,
                                            const LinearLayout &layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               LayoutAttr::get(type.getContext(), layout));
}

unsigned charonia::simt::elementBits(Type element) {
  if (element.isIndex())
    return 64;
  return std::max(8u, element.getIntOrFloatBitWidth());
}

//===----------------------------------------------------------------------===//
// #simt.layout<register = [[0, 1], [8, 0]], lane = [...] -> [16, 8]>
//===----------------------------------------------------------------------===//

void LayoutAttr::print(AsmPrinter &printer) const {
  const LinearLayout &layout = getLayout();
  printer << '<';
  llvm::interleaveComma(
      layout.ins(), printer, [&](const LinearLayout::Space &in) {
        printer << dimName(in.dim) << " = [";
        llvm::interleaveComma(
            layout.columnsOf(in.dim), printer, [&](f2::Vector image) {
              printer << '[';
              llvm::interleaveComma(
                  layout.outs(), printer, [&](const LinearLayout::Space &out) {
                    printer << layout.coordinate(image, out.dim);
                  });
              printer << ']';
            });
        printer << ']';
      });
  printer << " -> [";
  llvm::interleaveComma(
      layout.outs(), printer,
      [&](const LinearLayout::Space &out) { printer << (1u << out.bits); });
  printer << "]>";
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  struct Input {
    Dim dim;
    SmallVector<SmallVector<int64_t>> images;
  };
  SmallVector<Input> inputs;
  auto parseList = [&](SmallVectorImpl<int64_t> &list) {
    return parser.parseCommaSeparatedList(
        AsmParser::Delimiter::Square, [&]() -> ParseResult {
          return parser.parseInteger(list.emplace_back());
        });
  };
  SMLoc start = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  do {
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return {};
    Input input;
    if (keyword == "register")
      input.dim = Dim::Register;
    else if (keyword == "lane")
      input.dim = Dim::Lane;
    else if (keyword == "warp")
      input.dim = Dim::Warp;
    else if (keyword == "offset")
      input.dim = Dim::Offset;
    else
      return parser.emitError(start, "unknown hardware coordinate '")
                 << keyword << "'",
             Attribute();
    if (parser.parseEqual() ||
        parser.parseCommaSeparatedList(
            AsmParser::Delimiter::Square, [&]() -> ParseResult {
              return parseList(input.images.emplace_back());
            }))
      return {};
    inputs.push_back(std::move(input));
  } while (succeeded(parser.parseOptionalComma()));
  SmallVector<int64_t> extents;
  if (parser.parseArrow() || parseList(extents) || parser.parseGreater())
    return {};

  SmallVector<LinearLayout::Space> ins, outs;
  unsigned total = 0;
  for (auto [i, extent] : llvm::enumerate(extents)) {
    if (extent < 1 || !llvm::isPowerOf2_64(extent))
      return parser.emitError(start, "extents of a layout are powers of two"),
             Attribute();
    outs.push_back({axisDim(i), llvm::Log2_64(extent)});
    total += outs.back().bits;
  }
  if (total > 64)
    return parser.emitError(start, "layout of more than 2^64 elements"),
           Attribute();
  SmallVector<f2::Vector> columns;
  for (const Input &input : inputs) {
    ins.push_back({input.dim, unsigned(input.images.size())});
    for (const auto &image : input.images) {
      if (image.size() != outs.size())
        return parser.emitError(start,
                                "an image needs a coordinate for each axis"),
               Attribute();
      f2::Vector column = 0;
      unsigned shift = 0;
      for (auto [coordinate, out] : llvm::zip(image, outs)) {
        if (coordinate < 0 || coordinate >= int64_t(1) << out.bits)
          return parser.emitError(start, "coordinate outside of the tile"),
                 Attribute();
        column |= f2::Vector(coordinate) << shift;
        shift += out.bits;
      }
      columns.push_back(column);
    }
  }
  return LayoutAttr::get(parser.getContext(), LinearLayout(ins, outs, columns));
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                           function_ref<InFlightDiagnostic()> emitError) const {
  const LinearLayout &layout = getLayout();
  if (layout.outs().size() != shape.size())
    return emitError() << "layout of rank " << layout.outs().size()
                       << " for a tile of rank " << shape.size();
  for (auto [extent, out] : llvm::zip(shape, layout.outs()))
    if (extent != int64_t(1) << out.bits)
      return emitError() << "layout extent " << (1u << out.bits)
                         << " for a tile extent " << extent;
  if (!layout.isSurjective())
    return emitError() << "layout does not hold the whole tile";
  return success();
}

//===----------------------------------------------------------------------===//
// !simt.memory<128x32xf16, #simt.layout<...>>
//===----------------------------------------------------------------------===//

SmallVector<Value, 2> WarpgroupDotOp::getMemories() {
  SmallVector<Value, 2> memories;
  for (Value operand : getOperands().take_front(2))
    if (isa<MemoryType>(operand.getType()))
      memories.push_back(operand);
  return memories;
}

int64_t WarpgroupDotOp::getUsedColumns() {
  return getUsed() ? getUsed()
                   : cast<RankedTensorType>(getType()).getDimSize(1);
}

int64_t MemoryType::getNumElements() const {
  return std::accumulate(getShape().begin(), getShape().end(), int64_t(1),
                         std::multiplies<>());
}
int64_t MemoryType::getBytes() const {
  return getNumElements() * elementBits(getElementType()) / 8;
}

void MemoryType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t extent : getShape())
    printer << extent << 'x';
  printer << getElementType() << ", " << getLayout() << '>';
}

Type MemoryType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  LayoutAttr layout;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseComma() ||
      parser.parseAttribute(layout) || parser.parseGreater())
    return {};
  return MemoryType::get(parser.getContext(), shape, element, layout);
}
