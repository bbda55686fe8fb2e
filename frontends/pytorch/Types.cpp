#include "frontends/pytorch/Program.h"
#include "mlir/IR/Builders.h"

using namespace charonia::frontend;

/// The codes of the file are not those of the framework's own types.
mlir::Type pytorch::elementType(int dtype, mlir::MLIRContext *context) {
  mlir::Builder b(context);
  auto isUnsigned = mlir::IntegerType::Unsigned;
  switch (dtype) {
  case 1:
    return mlir::IntegerType::get(context, 8, isUnsigned);
  case 2:
    return b.getIntegerType(8);
  case 3:
    return b.getIntegerType(16);
  case 4:
    return b.getIntegerType(32);
  case 5:
    return b.getIntegerType(64);
  case 6:
    return b.getF16Type();
  case 7:
    return b.getF32Type();
  case 8:
    return b.getF64Type();
  case 12:
    return b.getI1Type();
  case 13:
    return b.getBF16Type();
  case 28:
    return mlir::IntegerType::get(context, 16, isUnsigned);
  case 29:
    return b.getType<mlir::Float8E4M3FNType>();
  case 30:
    return b.getType<mlir::Float8E5M2Type>();
  case 31:
    return b.getType<mlir::Float8E4M3FNUZType>();
  case 32:
    return b.getType<mlir::Float8E5M2FNUZType>();
  case 34:
    return mlir::IntegerType::get(context, 32, isUnsigned);
  case 35:
    return mlir::IntegerType::get(context, 64, isUnsigned);
  default:
    return {};
  }
}

bool pytorch::isComplex(int dtype) { return dtype >= 9 && dtype <= 11; }
mlir::Type pytorch::partType(int dtype, mlir::MLIRContext *context) {
  // Complex half, float and double; half, float and double.
  return elementType(isComplex(dtype) ? dtype - 3 : dtype, context);
}

std::string pytorch::dtypeName(int dtype) {
  switch (dtype) {
  case 1:
    return "uint8";
  case 2:
    return "int8";
  case 3:
    return "int16";
  case 4:
    return "int32";
  case 5:
    return "int64";
  case 6:
    return "float16";
  case 7:
    return "float32";
  case 8:
    return "float64";
  case 9:
    return "complex32";
  case 10:
    return "complex64";
  case 11:
    return "complex128";
  case 12:
    return "bool";
  case 13:
    return "bfloat16";
  case 28:
    return "uint16";
  case 29:
    return "float8_e4m3fn";
  case 30:
    return "float8_e5m2";
  case 31:
    return "float8_e4m3fnuz";
  case 32:
    return "float8_e5m2fnuz";
  case 33:
    return "float8_e8m0fnu";
  case 34:
    return "uint32";
  case 35:
    return "uint64";
  default:
    return "type " + std::to_string(dtype);
  }
}
