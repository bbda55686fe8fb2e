//===- Fields.h - Numbers of the manifest's fields --------------*- C++ -*-===//
//
// As in engine.proto, which says what they are; tests/runtime/EncodingTest.cpp
// compares the two.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_RUNTIME_ENGINE_FIELDS_H
#define CHARONIA_RUNTIME_ENGINE_FIELDS_H

#include <cstdint>

namespace charonia::engine::field {

namespace expr {
enum : uint32_t { Code = 1 };
}
namespace symbol {
enum : uint32_t { Name = 1, Min, Opt, Max, Divisor };
}
namespace tensor {
enum : uint32_t { Name = 1, Dtype, Dims };
}
namespace constraint {
enum : uint32_t { Relation = 1, Left, Right, Reason };
}
namespace signature {
enum : uint32_t { Inputs = 1, Outputs, Symbols, Constraints };
}
namespace range {
enum : uint32_t { Section = 1, Offset, Size };
}
namespace buffer {
enum : uint32_t {
  Name = 1,
  Kind,
  Index,
  WeightOffset,
  Size,
  FirstStep,
  LastStep,
  Alignment,
  AliasPlusOne,
  AliasOffset
};
}
namespace argument {
enum : uint32_t { Buffer = 1, Offset };
}
namespace step {
enum : uint32_t {
  Kind = 1,
  Kernel,
  Args,
  Bytes,
  Pattern,
  PatternSize,
  Nodes = 8,
  Symbols,
  BesidePrevious
};
}
namespace kernel {
enum : uint32_t { Name = 1, Ops, Flops, Bytes, NumSymbols };
}
namespace module {
enum : uint32_t { Image = 1, Ptx, Cubin };
}
namespace map {
enum : uint32_t {
  Argument = 1,
  ElementBytes,
  Swizzle,
  Extents,
  Strides,
  Box,
  Steps,
  Lower,
  Upper
};
}
namespace code {
enum : uint32_t {
  Module = 1,
  Entry,
  EntryOffset,
  Grid,
  BlockThreads,
  ClusterSize,
  SharedBytes,
  ScratchBytes,
  Grain,
  Registers,
  SpillBytes,
  WaitsForPrevious,
  Operations,
  NeededOperations,
  AccessedBytes,
  NeededBytes,
  Indexed,
  Maps,
  WaitsAtEnd
};
}
namespace variant {
enum : uint32_t { Arch = 1, Modules, Kernels };
}
namespace repeat {
enum : uint32_t { First = 1, Last, Symbol, Count };
} // namespace repeat
namespace program {
enum : uint32_t {
  Device = 1,
  Precision,
  WeightsSectionPlusOne,
  Kernels,
  Buffers,
  Steps,
  Variants,
  Repeats
};
}
namespace entry {
enum : uint32_t { Key = 1, Value };
}
namespace build {
enum : uint32_t { Compiler = 1, ModelName, SourceHash, Options, Notes };
}
namespace manifest {
enum : uint32_t { Signature = 1, Programs, Build };
}

} // namespace charonia::engine::field

#endif // CHARONIA_RUNTIME_ENGINE_FIELDS_H
