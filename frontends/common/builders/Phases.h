// What windows that are moved by a stride have in common.
#ifndef CHARONIA_FRONTENDS_COMMON_BUILDERS_PHASES_H
#define CHARONIA_FRONTENDS_COMMON_BUILDERS_PHASES_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace charonia::frontend {

/// Results a stride apart along one dimension that are computed alike. Behind
/// the padding, result `q * stride + r` is the sum over t < taps of input
/// q - offset - t * dilation times filter tap `first + r - residue + t * step`,
/// for `count` residues r from `residue` on.
struct Phases {
  int64_t residue, count, taps, first, step, offset, dilation;
};

/// All residues of one dimension in runs; a result without taps is 0.
llvm::SmallVector<Phases> phasesOf(int64_t kernel, int64_t stride,
                                   int64_t dilation);

} // namespace charonia::frontend

#endif
