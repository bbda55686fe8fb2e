//===- ProgramArena.cpp - The arena of a program at one shape -------------===//

#include "runtime/plan/ProgramArena.h"
#include "runtime/engine/Aliases.h"

#include <algorithm>

namespace charonia::plan {

using engine::Buffer;
using engine::noIndex;

Status doesNotFit(const std::string &what) {
  return Status(StatusCode::Corrupt,
                "the engine's program does not fit this shape: " + what);
}

Result<uint64_t> evaluateSize(const ShapeExpr &expr,
                              std::span<const int64_t> symbols,
                              std::span<const Symbol> names) {
  auto value = expr.evaluate(symbols);
  if (!value)
    return value.status();
  if (*value < 0)
    return doesNotFit("the size " + expr.str(names) + " is negative");
  return static_cast<uint64_t>(*value);
}

namespace {

class Builder {
public:
  Builder(const engine::Program &program, std::span<const int64_t> symbols,
          std::span<const Symbol> names)
      : buffers(program.buffers), symbols(symbols), names(names) {}

  Result<ProgramArena> run() {
    arena.sizes.reserve(buffers.size());
    for (const Buffer &buffer : buffers) {
      CHARONIA_ASSIGN_OR_RETURN(uint64_t size,
                                evaluateSize(buffer.size, symbols, names));
      arena.sizes.push_back(size);
    }
    CHARONIA_RETURN_IF_ERROR(findRoots());
    CHARONIA_ASSIGN_OR_RETURN(arena.packed, planArena(makeRequests()));
    return std::move(arena);
  }

private:
  Status findRoots() {
    arena.roots.resize(buffers.size());
    for (uint32_t b : engine::orderAliases(buffers.size(), [&](uint32_t i) {
                        return buffers[i].alias;
                      }).order) {
      uint32_t outer = buffers[b].alias;
      if (outer == noIndex) {
        arena.roots[b] = {b, 0};
        continue;
      }
      CHARONIA_ASSIGN_OR_RETURN(
          uint64_t offset,
          evaluateSize(buffers[b].aliasOffset, symbols, names));
      uint64_t whole = arena.sizes[outer];
      if (offset > whole || arena.sizes[b] > whole - offset)
        return doesNotFit("buffer " + std::to_string(b) +
                          " leaves the buffer that it is an alias of");
      BufferRoot around = arena.roots[outer];
      arena.roots[b] = {around.buffer, around.offset + offset};
      if (isInArena(b) && arena.roots[b].offset % buffers[b].alignment != 0)
        return doesNotFit(
            "buffer " + std::to_string(b) +
            " is not aligned inside the buffer that it is an alias of");
    }
    return Status::ok();
  }

  bool isInArena(uint32_t buffer) const {
    return buffers[arena.roots[buffer].buffer].kind == Buffer::Kind::Arena;
  }

  /// One for each root in the arena, for as long as any of its aliases lives
  /// and aligned for all of them.
  std::vector<BufferRequest> makeRequests() {
    std::vector<BufferRequest> requests;
    arena.requestOf.assign(buffers.size(), noIndex);
    for (uint32_t b = 0; b < buffers.size(); ++b) {
      if (!isInArena(b))
        continue;
      uint32_t root = arena.roots[b].buffer;
      uint32_t &index = arena.requestOf[root];
      const Buffer &buffer = buffers[b];
      if (index == noIndex) {
        index = static_cast<uint32_t>(requests.size());
        requests.push_back({arena.sizes[root], buffer.firstStep,
                            buffer.lastStep, buffer.alignment});
      }
      BufferRequest &request = requests[index];
      request.firstStep = std::min(request.firstStep, buffer.firstStep);
      request.lastStep = std::max(request.lastStep, buffer.lastStep);
      request.alignment = std::max(request.alignment, buffer.alignment);
      arena.requestOf[b] = index;
    }
    return requests;
  }

  const std::vector<Buffer> &buffers;
  std::span<const int64_t> symbols;
  std::span<const Symbol> names;
  ProgramArena arena;
};

} // namespace

Result<ProgramArena> planProgram(const engine::Program &program,
                                 std::span<const int64_t> symbols,
                                 std::span<const Symbol> names) {
  return Builder(program, symbols, names).run();
}

} // namespace charonia::plan
