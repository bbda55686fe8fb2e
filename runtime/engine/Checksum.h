//===- Checksum.h - XXH3 over a stream --------------------------*- C++ -*-===//
#ifndef CHARONIA_RUNTIME_ENGINE_CHECKSUM_H
#define CHARONIA_RUNTIME_ENGINE_CHECKSUM_H

#include <cstddef>
#include <cstdint>
#include <memory>

namespace charonia::engine {

/// The checksum of sections, fed in pieces.
class ChecksumStream {
public:
  ChecksumStream();
  ~ChecksumStream();
  void update(const void *data, size_t size);
  uint64_t digest() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_CHECKSUM_H
