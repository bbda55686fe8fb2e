//===- CpuInfo.cpp - What this CPU can do ---------------------------------===//

#include "runtime/device/cpu/CpuInfo.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include <cpuid.h>
#include <sched.h>

namespace charonia::cpu {

namespace {

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx))
    return {};
  return r;
}

uint64_t readXcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

bool has(uint32_t reg, uint32_t bits) { return (reg & bits) == bits; }

constexpr uint64_t ymmState = 0x06; // SSE and AVX halves.
constexpr uint64_t zmmState = 0xe6; // And mask registers, both AVX-512 parts.

int computeLevel() {
  Registers basic = cpuid(1), extended = cpuid(7), amd = cpuid(0x80000001);
  if (!has(basic.ecx, bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 |
                          bit_SSE4_2 | bit_POPCNT) ||
      !has(amd.ecx, bit_LAHF_LM))
    return 1;
  if (!has(basic.ecx, bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C) ||
      !has(extended.ebx, bit_BMI | bit_AVX2 | bit_BMI2) ||
      !has(amd.ecx, bit_ABM))
    return 2;
  uint64_t xcr0 = readXcr0();
  if ((xcr0 & ymmState) != ymmState)
    return 2;
  if (!has(extended.ebx, bit_AVX512F | bit_AVX512DQ | bit_AVX512CD |
                             bit_AVX512BW | bit_AVX512VL) ||
      (xcr0 & zmmState) != zmmState)
    return 3;
  return has(extended.ecx, bit_AVX512VNNI) ? 5 : 4;
}

constexpr const char *names[] = {"x86-64-v3", "x86-64-v4", "x86-64-v4-vnni"};
constexpr int firstNamed = 3;

/// The cores that the quota of the control group amounts to; 0: no quota.
int quotaCores() {
  std::ifstream unified("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (unified >> quota >> period) {
    if (quota == "max" || period <= 0)
      return 0;
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  double value = std::strtod(quota.c_str(), nullptr);
  if (value <= 0 || period <= 0)
    return 0;
  return std::max(1, static_cast<int>(value / period + 0.5));
}

} // namespace

int detectLevel() {
  static const int level = computeLevel();
  return level;
}

int levelOfArch(std::string_view arch) {
  for (int i = 0; i < int(std::size(names)); ++i)
    if (arch == names[i])
      return firstNamed + i;
  return 0;
}

std::string archOfLevel(int level) {
  return level < firstNamed ? "x86-64-v" + std::to_string(level)
                            : names[level - firstNamed];
}

Result<int> chooseLevel(const std::string &isa) {
  std::string name = isa, origin = "the option isa";
  if (name.empty())
    if (const char *variable = std::getenv("CHARONIA_CPU_ISA")) {
      name = variable;
      origin = "the environment variable CHARONIA_CPU_ISA";
    }
  if (name.empty())
    return detectLevel();
  int level = levelOfArch(name);
  if (level == 0)
    return Status(StatusCode::InvalidArgument,
                  origin + " is '" + name +
                      "'; it takes x86-64-v3, x86-64-v4 or x86-64-v4-vnni");
  if (level > detectLevel())
    return Status(StatusCode::Unsupported, origin + " asks for " + name +
                                               ", but this CPU has " +
                                               archOfLevel(detectLevel()));
  return level;
}

int availableCores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0)
    return 1;
  std::set<std::string> cores;
  int logical = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask))
      continue;
    ++logical;
    std::string folder =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    std::string siblings;
    std::ifstream list(folder + "core_cpus_list");
    if (!list)
      list.open(folder + "thread_siblings_list");
    if (std::getline(list, siblings))
      cores.insert(siblings);
  }
  int count = cores.empty() ? logical : static_cast<int>(cores.size());
  if (int quota = quotaCores())
    count = std::min(count, quota);
  return std::max(count, 1);
}

Result<int> chooseThreads(int threads) {
  constexpr int most = 1024;
  std::string origin = "the option threads", least = "0 (the default) to ";
  if (threads == 0) {
    const char *variable = std::getenv("CHARONIA_THREADS");
    if (!variable || !*variable)
      return availableCores();
    origin = "the environment variable CHARONIA_THREADS";
    least = "1 to ";
    std::string_view text = variable;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), threads);
    if (error != std::errc() || end != text.data() + text.size())
      threads = -1;
  }
  if (threads < 1 || threads > most)
    return Status(StatusCode::InvalidArgument,
                  origin + " takes a number from " + least +
                      std::to_string(most));
  return threads;
}

} // namespace charonia::cpu
