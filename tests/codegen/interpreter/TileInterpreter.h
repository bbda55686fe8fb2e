// Runs tile programs element by element, as their definition reads: the
// reference that compiled kernels are compared with.
#ifndef CHARONIA_TESTS_CODEGEN_INTERPRETER_TILEINTERPRETER_H
#define CHARONIA_TESTS_CODEGEN_INTERPRETER_TILEINTERPRETER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cstdint>
#include <string>
#include <vector>

namespace charonia::tile {

/// Memory of a buffer argument. Elements as the engine has them; bool is a
/// byte.
struct InterpreterBuffer {
  void *data;
  size_t elements;
};

/// Runs the program instances [begin, end) of a kernel one after the other.
/// Returns what is wrong with the program, or nothing: an access outside its
/// buffer, an unknown operator.
std::string interpret(mlir::func::FuncOp kernel,
                      llvm::ArrayRef<InterpreterBuffer> buffers,
                      llvm::ArrayRef<int64_t> symbols, int64_t begin,
                      int64_t end);

/// Conversions of 16-bit floating-point numbers.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(double value);
float bfloatToFloat(uint16_t bits);
uint16_t floatToBfloat(double value);

} // namespace charonia::tile

#endif
