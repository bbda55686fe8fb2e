#include "tools/charonia/Roofline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <immintrin.h>
#include <thread>

namespace charonia::tool {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Hides from the compiler that chains are alike: it would compute one of them.
#define keepApart(value) asm volatile("" : "+v"(value))

/// Chains of independent multiply-adds, as many as hide their latency.
__attribute__((target("avx512f"))) float multiplyAdd512(uint64_t rounds) {
  __m512 sums[12], factor = _mm512_set1_ps(0.999f),
                   term = _mm512_set1_ps(0.001f);
  for (auto &s : sums)
    s = _mm512_set1_ps(1);
  for (uint64_t i = 0; i < rounds; ++i)
    for (auto &s : sums) {
      s = _mm512_fmadd_ps(s, factor, term);
      keepApart(s);
    }
  __m512 total = sums[0];
  for (auto &s : sums)
    total = _mm512_add_ps(total, s);
  return _mm512_cvtss_f32(total);
}

__attribute__((target("avx2,fma"))) float multiplyAdd256(uint64_t rounds) {
  __m256 sums[12], factor = _mm256_set1_ps(0.999f),
                   term = _mm256_set1_ps(0.001f);
  for (auto &s : sums)
    s = _mm256_set1_ps(1);
  for (uint64_t i = 0; i < rounds; ++i)
    for (auto &s : sums) {
      s = _mm256_fmadd_ps(s, factor, term);
      keepApart(s);
    }
  __m256 total = sums[0];
  for (auto &s : sums)
    total = _mm256_add_ps(total, s);
  return _mm256_cvtss_f32(total);
}

/// The best of a few tries of `work` on all threads at once, in seconds.
template <typename Work> double fastest(unsigned threads, Work work) {
  double best = 1e30;
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto start = Clock::now();
    std::vector<std::thread> others;
    for (unsigned t = 1; t < threads; ++t)
      others.emplace_back(work, t);
    work(0);
    for (std::thread &thread : others)
      thread.join();
    best = std::min(best, since(start));
  }
  return best;
}

Ceilings measureCpu(unsigned threads) {
  [[maybe_unused]] static volatile float sink;
  [[maybe_unused]] static volatile uint64_t integerSink;
  constexpr uint64_t rounds = 2'000'000;
  bool wide = __builtin_cpu_supports("avx512f");
  double seconds = fastest(threads, [&](unsigned) {
    sink = wide ? multiplyAdd512(rounds) : multiplyAdd256(rounds);
  });
  Ceilings ceilings;
  ceilings.flops = threads * rounds * 12.0 * (wide ? 16 : 8) * 2 / seconds;

  constexpr size_t bytes = 64 << 20;
  std::vector<std::vector<uint64_t>> memory(
      threads, std::vector<uint64_t>(bytes / 8, 1));
  seconds = fastest(threads, [&](unsigned t) {
    uint64_t parts[8] = {};
    const uint64_t *data = memory[t].data();
    for (size_t i = 0; i < bytes / 8; i += 8)
      for (int k = 0; k < 8; ++k)
        parts[k] += data[i + k];
    integerSink = parts[0] + parts[1] + parts[2] + parts[3] + parts[4] +
                  parts[5] + parts[6] + parts[7];
  });
  ceilings.bandwidth = double(threads) * bytes / seconds;
  ceilings.source = "measured on " + std::to_string(threads) + " threads";
  return ceilings;
}

/// Data sheets: dense dot products, and memory.
struct KnownGpu {
  const char *name;
  double half, tf32, single, bandwidth;
};
constexpr KnownGpu knownGpus[] = {
    {"H200", 989e12, 494e12, 67e12, 4.8e12},
    {"H100 PCIe", 756e12, 378e12, 51e12, 2.0e12},
    {"H100", 989e12, 494e12, 67e12, 3.35e12},
    {"A100", 312e12, 156e12, 19.5e12, 2.0e12},
    {"L40S", 362e12, 183e12, 91e12, 0.864e12},
    {"L4", 121e12, 60e12, 30e12, 0.3e12},
    {"A10", 125e12, 62e12, 31e12, 0.6e12},
    {"RTX 4090", 165e12, 83e12, 83e12, 1.0e12},
};

} // namespace

Ceilings findCeilings(const Context &context, const std::string &precision,
                      unsigned threads) {
  if (context.device().kind == DeviceKind::Cpu)
    return measureCpu(std::max(1u, threads));
  std::string device = context.description();
  for (const KnownGpu &gpu : knownGpus)
    if (device.find(gpu.name) != std::string::npos) {
      double flops = precision == "fp16" || precision == "bf16" ? gpu.half
                     : precision == "tf32"                      ? gpu.tf32
                                                                : gpu.single;
      return {flops, gpu.bandwidth, "data sheet of " + std::string(gpu.name)};
    }
  return {};
}

Bound findBound(const Ceilings &ceilings, double flops, double bytes,
                double seconds) {
  if (seconds <= 0 || !ceilings.flops || !ceilings.bandwidth)
    return {};
  double compute = flops / ceilings.flops / seconds;
  double memory = bytes / ceilings.bandwidth / seconds;
  if (compute >= memory)
    return {"compute", compute};
  return memory > 1 ? Bound{"cache", 0} : Bound{"memory", memory};
}

} // namespace charonia::tool
