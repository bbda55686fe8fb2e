//===- CpuInfo.h - What this CPU can do -------------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_DEVICE_CPU_CPUINFO_H
#define CHARONIA_RUNTIME_DEVICE_CPU_CPUINFO_H

#include "charonia/status.h"

#include <string>
#include <string_view>

namespace charonia::cpu {

/// The x86-64 microarchitecture level (2, 3, 4; 1 if less; 5: 4 and AVX-512
/// VNNI), from cpuid, and from xgetbv for the registers that the operating
/// system saves.
int detectLevel();

/// "x86-64-v3" -> 3, "x86-64-v4-vnni" -> 5; 0 for a name of no code.
int levelOfArch(std::string_view arch);
std::string archOfLevel(int level);

/// The level to use: what there is, capped by `isa` ("x86-64-v3"; empty: by the
/// environment variable CHARONIA_CPU_ISA, if set). An error for an unknown name
/// and for a level that this CPU does not have.
Result<int> chooseLevel(const std::string &isa);

/// Physical cores that this process may use: its affinity mask, one per core,
/// and no more than the quota of its control group. At least 1.
int availableCores();

/// `threads` if positive, else CHARONIA_THREADS, else availableCores().
Result<int> chooseThreads(int threads);

} // namespace charonia::cpu

#endif // CHARONIA_RUNTIME_DEVICE_CPU_CPUINFO_H
