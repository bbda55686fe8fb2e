// Sums of single steps of a product, where an instruction sums up in few bits:
// what the cost model expects of them and the pipeline makes.
#ifndef CHARONIA_CODEGEN_TARGET_STEPSUMS_H
#define CHARONIA_CODEGEN_TARGET_STEPSUMS_H

#include <algorithm>
#include <cstdint>

namespace charonia {

constexpr int64_t kRegisters = 65536; ///< Of a multiprocessor.

/// Registers of a thread where so many threads share a multiprocessor.
constexpr int64_t registersOfThread(int64_t threads) {
  constexpr int64_t most = 255;
  return std::min(most, kRegisters / threads);
}

/// The same where warps of program instances are counted: each quarter of a
/// multiprocessor has room for a quarter of the registers.
constexpr int64_t registersOfWarps(int64_t warps) {
  constexpr int64_t most = 255, quarters = 4, lanes = 32, granule = 8;
  int64_t each = (warps + quarters - 1) / quarters * quarters * lanes;
  return std::min(most, kRegisters / each / granule * granule);
}

/// Registers of a thread where a warpgroup that copies gives its own to the
/// `warps` others (setmaxnreg).
struct GivenRegisters {
  static constexpr int64_t copyWarps = 4, kept = 24, granule = 8, most = 240;
  static constexpr int64_t of(int64_t warps, int64_t residents) {
    int64_t all =
        registersOfWarps((warps + copyWarps) * residents) / granule * granule;
    return std::min(most, (all + (all - kept) * copyWarps / warps) / granule *
                              granule);
  }
};

/// Sums of two steps take turns: those of one are added to the total under the
/// products of the other.
struct SumsInTurns {
  static constexpr int64_t sets = 3;
  /// Steps behind one another before all is waited for.
  static constexpr int64_t mostSteps = 8;
  /// Of a thread with so many sums; ptxas keeps more addresses than it needs
  /// where it can.
  static constexpr int64_t registers(int64_t sums) {
    constexpr int64_t others = 60;
    return sets * sums + others;
  }
};

} // namespace charonia

#endif
