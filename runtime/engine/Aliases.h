//===- Aliases.h - Buffers inside of buffers --------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_ALIASES_H
#define CHARONIA_RUNTIME_ENGINE_ALIASES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace charonia::engine {

/// An order of buffers in which each comes after the one that it lies in, so
/// that one pass resolves chains of any length.
struct AliasOrder {
  std::vector<uint32_t> order;
  /// A buffer that is an alias of itself, directly or through others;
  /// UINT32_MAX: there is none. `order` lacks what hangs on a cycle.
  uint32_t cycle = UINT32_MAX;
};

/// `aliasOf(i)` is the number of the buffer that buffer i lies in, below
/// `count`, or UINT32_MAX.
template <typename AliasOf>
AliasOrder orderAliases(size_t count, AliasOf aliasOf) {
  enum : char { New, Open, Done };
  AliasOrder result;
  result.order.reserve(count);
  std::vector<char> state(count, New);
  std::vector<uint32_t> chain;
  for (size_t i = 0; i < count; ++i) {
    chain.clear();
    auto b = static_cast<uint32_t>(i);
    while (b != UINT32_MAX && state[b] == New) {
      state[b] = Open;
      chain.push_back(b);
      b = aliasOf(b);
    }
    if (b != UINT32_MAX && state[b] == Open) {
      result.cycle = b;
      return result;
    }
    for (size_t c = chain.size(); c-- > 0;) {
      state[chain[c]] = Done;
      result.order.push_back(chain[c]);
    }
  }
  return result;
}

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_ALIASES_H
