// Which inputs of a program its guards speak of.
#ifndef CHARONIA_FRONTENDS_PYTORCH_GUARDSOURCES_H
#define CHARONIA_FRONTENDS_PYTORCH_GUARDSOURCES_H

#include "frontends/pytorch/GuardText.h"
#include "frontends/pytorch/Program.h"

namespace charonia::frontend::pytorch {

/// Reads what guards name of inputs.
class SourceReader {
public:
  explicit SourceReader(const Program &program);

  /// Null where it is of no input, or not one alone.
  ExpressionPtr read(const GuardSource &source);

  /// Whether one was named that says how a tensor lies in memory.
  bool namesMemory = false;
  /// Inputs of which a source may be each, in words; empty where there was no
  /// such source.
  std::string ambiguous;

private:
  std::optional<size_t> find(llvm::ArrayRef<std::string> path);
  std::vector<size_t> candidates(llvm::ArrayRef<std::string> path) const;
  std::string nameOf(size_t input) const;
  bool mayBeNamed(size_t input, llvm::ArrayRef<std::string> path) const;

  const Program &program;
  /// Positions in the graph of what the caller gives, in order.
  std::vector<size_t> inputs;
};

} // namespace charonia::frontend::pytorch

#endif
