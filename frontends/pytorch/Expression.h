// Sizes as an exported program writes them: sympy's "srepr" text.
#ifndef CHARONIA_FRONTENDS_PYTORCH_EXPRESSION_H
#define CHARONIA_FRONTENDS_PYTORCH_EXPRESSION_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace charonia::frontend::pytorch {

/// "Add(Integer(2), Symbol('s77', positive=True, integer=True))".
struct Expression {
  /// "Integer", "Symbol", "Add", ...
  std::string head;
  /// Of an Integer.
  int64_t value = 0;
  /// Of a Float.
  double number = 0;
  /// Of a Symbol.
  std::string name;
  std::vector<std::shared_ptr<const Expression>> operands;

  /// As one writes it: "2*s77 + 1".
  std::string toString() const;
};
using ExpressionPtr = std::shared_ptr<const Expression>;

ExpressionPtr makeInteger(int64_t value);
/// The value of an Integer; none of others.
std::optional<int64_t> integerOf(const ExpressionPtr &expression);

/// Parses texts, each different one once.
class ExpressionParser {
public:
  /// Null and what is wrong in `problem` where the text is none.
  ExpressionPtr parse(llvm::StringRef text, std::string &problem);

private:
  llvm::StringMap<ExpressionPtr> known;
};

} // namespace charonia::frontend::pytorch

#endif
