#include "frontends/common/Tables.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::frontend;

/// Bytes of one table: a transform of prime length 4093 has two of 64 MiB.
constexpr int64_t maxTable = int64_t(1) << 26;
/// Bytes that count as one node.
constexpr int64_t bytesOfNode = 2048;

llvm::LogicalResult charonia::frontend::reserveTable(int64_t elements,
                                                     mlir::Type element,
                                                     Emitter &e) {
  if (e.failed() || !element)
    return llvm::failure();
  int64_t width = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  if (elements < 0 || elements > maxTable / width)
    return e.fail("needs a table of " + llvm::Twine(elements) +
                      " elements of " + llvm::Twine(width) +
                      " bytes; tables of up to " + llvm::Twine(maxTable >> 20) +
                      " MiB are made",
                  "make it an input, or a constant of the model");
  return e.writeOut(llvm::divideCeil(elements * width, bytesOfNode));
}
