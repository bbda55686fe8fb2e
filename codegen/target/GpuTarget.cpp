#include "codegen/target/GpuTarget.h"
#include "llvm/ADT/STLExtras.h"

using namespace charonia;
using Form = DotInstruction::Form;

// Rates were fitted on an H200 (codegen/emit/GpuTiles.h). The K of a
// warpgroup's tile fills a row of the swizzle. Only operands of 16 bits may be
// transposed on their way from shared memory. That of 8 bits is twice that of
// 16.
static constexpr DotInstruction kAmpere[] = {
    {Form::Mma, 16, 16, 8, 16, 1, 3.2e6},
    {Form::Mma, 32, 16, 8, 8, 1, 1.6e6},
    {Form::MultiplyAdd, 0, 1, 1, 1, 1, 0.25e6}};
static constexpr DotInstruction kHopper[] = {
    {Form::WarpgroupMma, 16, 64, 8, 64, 4, 5.77e6},
    {Form::WarpgroupMma, 32, 64, 8, 32, 4, 2.88e6, true},
    {Form::WarpgroupMma, 8, 64, 8, 128, 4, 11.54e6, true, true},
    {Form::Mma, 16, 16, 8, 16, 1, 3.2e6},
    {Form::Mma, 32, 16, 8, 8, 1, 1.6e6},
    {Form::MultiplyAdd, 0, 1, 1, 1, 1, 0.25e6}};

static constexpr int64_t kKilo = 1024, kMega = kKilo * kKilo;
// Multiprocessors, cache and memory are those of the largest chip of a kind.
static constexpr GpuTarget kTargets[] = {
    {"sm_80", 108, 163 * kKilo, 40 * kMega, 1.8e6, false, 1, false, kAmpere},
    {"sm_86", 84, 99 * kKilo, 6 * kMega, 0.7e6, false, 1, false, kAmpere},
    {"sm_87", 16, 163 * kKilo, 4 * kMega, 0.18e6, false, 1, false, kAmpere},
    {"sm_89", 142, 99 * kKilo, 72 * kMega, 0.9e6, false, 1, false, kAmpere},
    {"sm_90", 132, 227 * kKilo, 50 * kMega, 4.2e6, true, 8, true, kAmpere},
    {"sm_90a", 132, 227 * kKilo, 50 * kMega, 4.2e6, true, 8, true, kHopper},
    {"sm_100", 148, 227 * kKilo, 126 * kMega, 7e6, true, 8, true, kAmpere},
    {"sm_100a", 148, 227 * kKilo, 126 * kMega, 7e6, true, 8, true, kAmpere},
    {"sm_103", 148, 227 * kKilo, 126 * kMega, 7e6, true, 8, true, kAmpere},
    {"sm_103a", 148, 227 * kKilo, 126 * kMega, 7e6, true, 8, true, kAmpere},
    {"sm_120", 188, 99 * kKilo, 96 * kMega, 1.55e6, true, 1, true, kAmpere},
    {"sm_120a", 188, 99 * kKilo, 96 * kMega, 1.55e6, true, 1, true, kAmpere},
    {"sm_121", 48, 99 * kKilo, 24 * kMega, 0.24e6, true, 1, true, kAmpere},
    {"sm_121a", 48, 99 * kKilo, 24 * kMega, 0.24e6, true, 1, true, kAmpere}};

const DotInstruction &GpuTarget::dotFor(unsigned elementBits, int64_t m,
                                        int64_t n, int64_t k, unsigned warps,
                                        bool alongTerms) const {
  for (const DotInstruction &dot : dots.drop_back())
    if (dot.elementBits == elementBits && m >= dot.rows && n >= dot.columns &&
        k >= dot.depth && warps % dot.warps == 0 &&
        (alongTerms || !dot.alongTerms))
      return dot;
  return dots.back();
}

const GpuTarget *GpuTarget::get(llvm::StringRef chip) {
  const auto *found = llvm::find_if(
      kTargets, [&](const GpuTarget &target) { return target.chip == chip; });
  return found == std::end(kTargets) ? nullptr : found;
}

std::vector<llvm::StringRef> GpuTarget::known() {
  std::vector<llvm::StringRef> chips;
  for (const GpuTarget &target : kTargets)
    chips.push_back(target.chip);
  return chips;
}
