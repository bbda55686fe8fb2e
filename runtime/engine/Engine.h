//===- Engine.h - An engine file as plain structs ---------------*- C++ -*-===//
//
// The compiler fills a Manifest and hands it to the Writer together with the
// raw sections (code, weights); the Reader gives it back, checked. The protobuf
// message (engine.proto) is an encoding detail of these two.
// docs/engine-format.md describes the bytes.
//
// Everything here is a value: copy, compare, change as you like.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_ENGINE_ENGINE_H
#define CHARONIA_RUNTIME_ENGINE_ENGINE_H

#include "charonia/signature.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace charonia::engine {

constexpr uint32_t noIndex = UINT32_MAX;

/// Elements that indices of 32 bits count: what tiles have past the end of a
/// tensor must not wrap.
constexpr int64_t maxIndexed = (int64_t(1) << 31) - (int64_t(1) << 20);

/// Bytes inside a section. Size 0 means "none".
struct Range {
  uint32_t section = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  bool empty() const { return size == 0; }
  friend bool operator==(const Range &, const Range &) = default;
};

/// A region of memory that kernels read or write.
///
/// Lifetimes are counted in steps of the program: the buffer's content matters
/// from the start of firstStep to the end of lastStep (both inclusive). The
/// arena's offsets are not stored: the runtime packs the buffers for every
/// concrete shape.
struct Buffer {
  enum class Kind : uint8_t {
    Input = 1,  ///< The caller's input `index`; kernels must not write it.
    Output = 2, ///< The caller's output `index`.
    Weight = 3, ///< `weightOffset` in the program's weights section; read only.
    Arena = 4,  ///< Scratch of a run; undefined at its first step.
  };
  std::string
      name; ///< For people: the value's name in the model, may be empty.
  Kind kind = Kind::Arena;
  uint32_t index = 0;        ///< Input, Output: number in the signature.
  uint64_t weightOffset = 0; ///< Weight: bytes from the section's start.
  ShapeExpr size;            ///< Bytes; constant for weights.
  uint32_t firstStep = 0;
  uint32_t lastStep = 0;
  /// What kernels may assume of the address; a power of two <= 4096 (CUDA:
  /// 256). For inputs and outputs keep it small (16, or the element's size): a
  /// caller's pointer that is aligned less is copied first.
  uint32_t alignment = 64;
  /// Arena only: lies inside that buffer (of any kind), aliasOffset bytes from
  /// its start: in-place results, slices, concatenation without a copy. Chains
  /// are allowed, cycles are not.
  uint32_t alias = noIndex;
  ShapeExpr aliasOffset;

  friend bool operator==(const Buffer &, const Buffer &) = default;
};

/// One argument of a launch: an address inside a buffer.
struct Argument {
  uint32_t buffer = 0;
  ShapeExpr offset; ///< Bytes from the buffer's start.
  friend bool operator==(const Argument &, const Argument &) = default;
};

/// Steps run in order; each sees the results of all before it, but for those
/// that it may run beside.
struct Step {
  enum class Kind : uint8_t {
    Launch = 1, ///< Kernel `kernel` with `args` in order.
    Copy = 2, ///< `bytes` bytes from args[1] to args[0] (dst, src); no overlap.
    Fill = 3, ///< `bytes` bytes of args[0] set to the repeated pattern.
  };
  Kind kind = Kind::Launch;
  uint32_t kernel = 0;
  std::vector<Argument> args;
  /// Launch: the sizes that the kernel gets, in order: numbers of the
  /// signature's symbols, Kernel::numSymbols of them.
  std::vector<uint32_t> symbols;
  ShapeExpr bytes;
  uint32_t pattern = 0;     ///< Fill: value, the low patternSize bytes.
  uint32_t patternSize = 1; ///< Fill: 1, 2 or 4; bytes is a multiple of it.
  std::vector<std::string> nodes; ///< Names of the model's nodes, for reports.
  /// Launch: nothing of it depends on the steps before it, back to the last one
  /// that is not so marked, nor they on it: they are a wave, launches all of
  /// them, whose buffers live until its last step, and may run side by side.
  bool besidePrevious = false;

  friend bool operator==(const Step &, const Step &) = default;
};

/// What all variants of a kernel have in common. Several steps may launch one
/// kernel (equal layers). Its expressions, and those of its code, are over the
/// sizes that a launch gives it: symbol i of them is Step::symbols[i].
struct Kernel {
  std::string name;
  std::vector<std::string>
      ops;                 ///< Descriptions of the operators fused into it.
  ShapeExpr flops;         ///< Per launch, for the roofline.
  ShapeExpr bytes;         ///< That must move between memory and chip.
  uint32_t numSymbols = 0; ///< Sizes that its code takes.

  friend bool operator==(const Kernel &, const Kernel &) = default;
};

/// A unit of code that is loaded as a whole.
///   CPU: `image`, a flat position-independent image (text and constants,
///   nothing
///        writable, nothing undefined), its range aligned to 64 bytes at least.
///   CUDA: `ptx` (text) always, `cubin` for the variant's own arch if it was
///   made.
struct CodeModule {
  Range image;
  Range ptx;
  Range cubin;
  friend bool operator==(const CodeModule &, const CodeModule &) = default;
};

/// CUDA: what the copy engine of sm_90 and later is told of a tensor that a
/// kernel copies boxes of (cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col).
/// The runtime encodes it for each launch: 128 bytes that the kernel takes by
/// value.
struct TensorMap {
  uint32_t argument = 0;     ///< Of the launch: where the tensor begins.
  uint32_t elementBytes = 2; ///< 1, 2, 4 or 8.
  /// Bytes after which 16-byte pieces of shared memory trade places: 128, or 0.
  uint32_t swizzle = 0;
  /// In elements, the innermost dimension (neighbours in memory) first, over
  /// the kernel's sizes: 1 to 5 of them, 3 to 5 for im2col.
  std::vector<ShapeExpr> extents;
  /// Bytes from an element to its neighbour along each but the innermost:
  /// multiples of 16, extents.size() - 1 of them.
  std::vector<ShapeExpr> strides;
  /// Elements of a box along each dimension; im2col: channels, then pixels.
  std::vector<uint32_t> box;
  /// From one element of a box to the next, along each dimension.
  std::vector<uint32_t> steps;
  /// im2col: the corners of the box that base pixels walk through, from the
  /// first and to the last element of each dimension but the innermost and the
  /// outermost, in the order of extents; empty: a tiled map.
  std::vector<int32_t> lower, upper;

  bool isIm2col() const { return !lower.empty() || !upper.empty(); }
  friend bool operator==(const TensorMap &, const TensorMap &) = default;
};

/// How a variant implements a kernel.
struct KernelCode {
  uint32_t module = 0;       ///< Index in the variant's modules.
  std::string entry;         ///< CUDA: the function's name. CPU: for reports.
  uint64_t entryOffset = 0;  ///< CPU: bytes from the image's start.
  ShapeExpr grid = 1;        ///< Program instances, over the kernel's sizes; 0
                             ///< launches nothing.
  uint32_t blockThreads = 1; ///< CUDA: threads per program instance.
  uint32_t clusterSize = 1;  ///< CUDA: program instances per cluster.
  uint64_t sharedBytes = 0;  ///< CUDA: dynamic shared memory.
  uint64_t scratchBytes = 0; ///< CPU: scratch per thread, 64-byte aligned.
  uint32_t grain = 1;        ///< CPU: instances worth handing out at a time.
  uint32_t registers = 0;    ///< CUDA: per thread, from ptxas; 0: not known.
  uint32_t spillBytes = 0;   ///< CUDA: per thread, from ptxas.
  /// CUDA: may be launched before the kernel before it has ended (programmatic
  /// dependent launch). Every thread waits by griddepcontrol.wait; before that
  /// it reads weights alone and writes nothing.
  bool waitsForPrevious = false;
  /// CUDA: it does so behind all that it reads and writes (but for parts of
  /// sums that meet), so it overlaps only what its step may run beside.
  bool waitsAtEnd = false;
  /// For reports, of a launch at the sizes that the code was optimized for:
  /// operations on elements and bytes that it loads and stores, from wherever,
  /// and what its operators need if each does its work once.
  uint64_t operations = 0, neededOperations = 0;
  uint64_t accessedBytes = 0, neededBytes = 0;
  /// CUDA: the most elements that its indices have to count, where those have
  /// 32 bits and sizes in the symbols' ranges are too large for them. A launch
  /// for which this is above maxIndexed is refused. 0: no size is.
  ShapeExpr indexed;
  /// CUDA: passed behind the pointers and the sizes, each aligned to 64 bytes.
  std::vector<TensorMap> maps;

  friend bool operator==(const KernelCode &, const KernelCode &) = default;
};

/// The program's kernels for one instruction set or chip.
/// arch: "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni"; "sm_80", "sm_90a", ... The
/// runtime takes the best that the machine supports; the first of equals.
struct Variant {
  std::string arch;
  std::vector<CodeModule> modules;
  std::vector<KernelCode> kernels; ///< One per Program::kernels, same order.
  friend bool operator==(const Variant &, const Variant &) = default;
};

/// All that one kind of device needs to run the model at one precision.
/// Steps [first, last) of a program, of which there are some, that run `count`
/// times, with 1 to `count` as the value of `symbol`, which is what its
/// equation says elsewhere. Before the first time and behind the last nothing
/// of them runs.
struct Repeat {
  uint32_t first = 0, last = 0;
  uint32_t symbol = 0;
  ShapeExpr count;
  friend bool operator==(const Repeat &, const Repeat &) = default;
};

struct Program {
  DeviceKind device = DeviceKind::Cpu;
  std::string precision = "fp32"; ///< fp32, tf32, fp16, bf16, ...
  uint32_t weightsSection = noIndex;
  std::vector<Kernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Repeat> repeats; ///< In order; none inside of another.
  std::vector<Variant> variants;
  friend bool operator==(const Program &, const Program &) = default;
};

/// Where the engine comes from. No time, no user, no machine: the same source
/// and options give the same bytes.
struct BuildRecord {
  std::string compiler;   ///< "charonia 0.1.0"
  std::string modelName;  ///< File name without its folder.
  std::string sourceHash; ///< Hash of the model with its external data, hex.
  std::vector<std::pair<std::string, std::string>> options;
  /// Further facts for `inspect`, e.g. {"memory.peak", "1234"}.
  std::vector<std::pair<std::string, std::string>> notes;
  friend bool operator==(const BuildRecord &, const BuildRecord &) = default;
};

/// The last step of the wave that `step` is in (Step::besidePrevious).
size_t lastOfWave(std::span<const Step> steps, size_t step);

struct Manifest {
  Signature signature;
  std::vector<Program> programs;
  BuildRecord build;
  friend bool operator==(const Manifest &, const Manifest &) = default;
};

/// What a raw section holds. The values are part of the file format.
enum class SectionKind : uint32_t {
  Manifest = 1,
  Code = 2,
  Weights = 3,
  Other = 4
};

struct SectionInfo {
  SectionKind kind = SectionKind::Other;
  std::string name; ///< At most 31 bytes.
  uint64_t alignment = 4096;
  uint64_t offset = 0; ///< In the file.
  uint64_t size = 0;
  uint64_t checksum = 0; ///< XXH3, 64 bits, of the section's bytes.
};

/// Checks everything a runtime relies on: indices, counts, expressions, ranges
/// inside sections, lifetimes that cover the steps, aliases without cycles. The
/// Writer refuses and the Reader rejects what fails here.
Status verify(const Manifest &manifest, std::span<const SectionInfo> sections);

} // namespace charonia::engine

#endif // CHARONIA_RUNTIME_ENGINE_ENGINE_H
