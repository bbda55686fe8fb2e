#include "frontends/common/builders/Phases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace charonia;
using llvm::SmallVector;

SmallVector<frontend::Phases> frontend::phasesOf(int64_t kernel, int64_t stride,
                                                 int64_t dilation) {
  int64_t common = std::gcd(stride, dilation), step = stride / common;
  // The first tap of each residue that has one.
  SmallVector<std::pair<int64_t, int64_t>> firsts;
  for (int64_t tap = 0; tap < std::min(step, kernel); ++tap)
    firsts.push_back({tap * dilation % stride, tap});
  llvm::sort(firsts);
  SmallVector<Phases> runs;
  auto addEmpty = [&](int64_t from, int64_t to) {
    if (from < to)
      runs.push_back({from, to - from, 0, 0, step, 0, dilation / common});
  };
  int64_t next = 0;
  for (auto [residue, tap] : firsts) {
    addEmpty(next, residue);
    next = residue + 1;
    Phases own{residue,
               1,
               int64_t(llvm::divideCeil(kernel - tap, step)),
               tap,
               step,
               (tap * dilation - residue) / stride,
               dilation / common};
    if (!runs.empty()) {
      Phases &last = runs.back();
      if (own.taps == last.taps && own.offset == last.offset &&
          own.first == last.first + last.count) {
        ++last.count;
        continue;
      }
    }
    runs.push_back(own);
  }
  addEmpty(next, stride);
  return runs;
}
