//===- PlannerGraphs.h - Buffers as models have them ------------*- C++ -*-===//
#ifndef CHARONIA_TESTS_RUNTIME_PLANNERGRAPHS_H
#define CHARONIA_TESTS_RUNTIME_PLANNERGRAPHS_H

#include "runtime/plan/Planner.h"

#include <algorithm>
#include <random>

namespace charonia::test {

using plan::BufferRequest;

/// A ResNet-like stage: blocks whose input lives until the residual addition.
inline std::vector<BufferRequest> residualGraph(std::mt19937 &random,
                                                int blocks) {
  std::vector<BufferRequest> requests;
  uint32_t step = 0;
  uint64_t size = 802816;
  for (int b = 0; b < blocks; ++b) {
    if (random() % 4 == 0)
      size = std::max<uint64_t>(size / 2, 4096);
    uint32_t convs = 2 + random() % 2;
    bool downsample = random() % 3 == 0;
    requests.push_back({size, step, step + convs + downsample});
    for (uint32_t c = 0; c + 1 < convs; ++c)
      requests.push_back(
          {size / (1 + random() % 4), step + 1 + c, step + 2 + c});
    if (downsample)
      requests.push_back({size / 2, step + convs, step + convs + 1});
    step += convs + downsample;
  }
  return requests;
}

/// A transformer: q, k, v and scores per layer around a long-lived residual.
inline std::vector<BufferRequest> transformerGraph(int layers, uint64_t seq) {
  std::vector<BufferRequest> requests;
  uint32_t s = 0;
  uint64_t row = seq * 768 * 2;
  for (int l = 0; l < layers; ++l, s += 7) {
    requests.push_back({row, s, s + 4});          // residual
    requests.push_back({row, s + 1, s + 2});      // norm
    requests.push_back({3 * row, s + 2, s + 3});  // qkv
    requests.push_back({row, s + 3, s + 4});      // attention
    requests.push_back({row, s + 4, s + 7});      // residual 2
    requests.push_back({4 * row, s + 5, s + 6});  // mlp
    requests.push_back({row / 64, s + 4, s + 5}); // statistics
  }
  return requests;
}

/// Buffers of random sizes that live for up to `span` steps.
inline std::vector<BufferRequest> randomGraph(std::mt19937 &random, uint32_t n,
                                              uint32_t span) {
  std::vector<BufferRequest> requests;
  for (uint32_t i = 0; i < n; ++i)
    requests.push_back({64 + random() % (1 << 20), i,
                        i + static_cast<uint32_t>(random() % span)});
  return requests;
}

} // namespace charonia::test

#endif // CHARONIA_TESTS_RUNTIME_PLANNERGRAPHS_H
