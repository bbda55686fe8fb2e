#include "frontends/common/builders/Einsum.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace charonia;
using namespace charonia::frontend;
using llvm::SmallVector;
using llvm::Twine;
using mlir::AffineExpr;
using mlir::Value;

namespace {
/// A term of an Einstein sum: a tensor with a letter for each dimension.
struct Term {
  Value value;
  std::string letters;
};

/// Einstein sums, combined from the left, two terms at a time, as matrix
/// products.
class Einsum {
public:
  Einsum(llvm::StringRef equation, mlir::ValueRange operands, Emitter &e)
      : given(equation), operands(operands), e(e) {}
  Value run();

private:
  llvm::LogicalResult parse();
  llvm::LogicalResult expandEllipsis(std::string &letters,
                                     std::optional<unsigned> rank);
  llvm::LogicalResult takeDiagonals(Term &term);
  Term permute(Term term, const std::string &letters);
  Term sumAway(Term term, const std::string &kept);
  Term multiply(Term a, Term b, const std::string &kept);
  AffineExpr sizeOf(const std::string &letters);

  llvm::StringRef given;
  mlir::ValueRange operands;
  Emitter &e;
  SmallVector<Term> terms;
  std::string output, ellipsis;
  /// The letters of all terms as they are written.
  std::string written;
  std::map<char, AffineExpr> sizes;
};
} // namespace

/// "..." stands for the dimensions that no letter names, as digits 0, 1, ...,
/// aligned to the right.
llvm::LogicalResult Einsum::expandEllipsis(std::string &letters,
                                           std::optional<unsigned> rank) {
  size_t at = letters.find("...");
  std::string inserted;
  if (at != std::string::npos) {
    size_t named = letters.size() - 3, width = ellipsis.size();
    if (rank) {
      if (*rank < named || *rank - named > 9)
        return e.fail(
            "the equation has more letters than the operand has dimensions");
      width = *rank - named;
      while (ellipsis.size() < width)
        ellipsis.insert(ellipsis.begin(), char('9' - ellipsis.size()));
    }
    inserted = ellipsis.substr(ellipsis.size() - width);
    letters.replace(at, 3, inserted);
  }
  for (char c : letters)
    if (!llvm::isAlpha(c) && inserted.find(c) == std::string::npos)
      return e.fail("the equation holds '" + std::string(1, c) + "'");
  return llvm::success();
}

/// Of dimensions that share a letter, only the diagonal is left: the last of
/// the two, merged and read in steps of one more than their size.
llvm::LogicalResult Einsum::takeDiagonals(Term &term) {
  for (size_t i = 0; i < term.letters.size();) {
    size_t j = term.letters.find(term.letters[i], i + 1);
    if (j == std::string::npos) {
      ++i;
      continue;
    }
    Exprs shape = graph::getShape(term.value);
    auto size = graph::constantOf(shape[i]);
    if (!size || shape[i] != shape[j])
      return e.fail("a diagonal (a letter twice in one term) needs two equal "
                    "sizes that are known",
                    "fix them with --shape");
    SmallVector<int64_t> order;
    Exprs merged;
    std::string letters;
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != i && d != j) {
        order.push_back(d);
        merged.push_back(shape[d]);
        letters += term.letters[d];
      }
    order.append({int64_t(i), int64_t(j)});
    merged.push_back(e.number(*size * *size));
    letters += term.letters[i];
    SmallVector<int64_t> steps(merged.size(), 1);
    steps.back() = *size + 1;
    Exprs result = merged;
    result.back() = e.number(*size);
    Value flat = e.reshape(e.transpose(term.value, order), merged);
    term = {e.slice(flat, Exprs(merged.size(), e.number(0)), steps, result),
            letters};
    if (!term.value)
      return llvm::failure();
    i = 0;
  }
  return llvm::success();
}

llvm::LogicalResult Einsum::parse() {
  std::string equation;
  for (char c : given)
    if (!llvm::isSpace(c))
      equation += c;
  auto [left, right] = llvm::StringRef(equation).split("->");
  SmallVector<llvm::StringRef> parts;
  left.split(parts, ',');
  if (parts.size() != operands.size())
    return e.fail("the equation has " + Twine(parts.size()) +
                  " terms, the node " + Twine(operands.size()) + " inputs");
  for (auto [i, part] : llvm::enumerate(parts)) {
    Term term{operands[i], part.str()};
    Exprs shape = graph::getShape(term.value);
    if (failed(expandEllipsis(term.letters, shape.size())))
      return llvm::failure();
    if (term.letters.size() != shape.size())
      return e.fail("term '" + part + "' does not fit " +
                    e.describe(term.value.getType()));
    written += term.letters;
    if (failed(takeDiagonals(term)))
      return llvm::failure();
    shape = graph::getShape(term.value);
    for (auto [letter, size] : llvm::zip(term.letters, shape)) {
      auto [it, isNew] = sizes.try_emplace(letter, size);
      if (isNew || it->second == size || size == e.number(1))
        continue;
      if (it->second == e.number(1)) {
        it->second = size;
        continue;
      }
      if (!e.agree(it->second, size, "names them alike"))
        return e.fail(
            "'" + std::string(1, letter) + "' is both " +
                e.getSymbols().toString(it->second) + " and " +
                e.getSymbols().toString(size),
            "check the model, or the names and ranges that --shape gives "
            "these sizes");
      it->second = e.getSymbols().resolve(size);
    }
    terms.push_back(std::move(term));
  }
  output = right.str();
  if (llvm::StringRef(equation).contains("->"))
    return expandEllipsis(output, std::nullopt);
  // Without an output: what appears once, in alphabetic order.
  output = ellipsis;
  for (auto &[letter, size] : sizes)
    if (llvm::isAlpha(letter) && llvm::count(written, letter) == 1)
      output += letter;
  return llvm::success();
}

AffineExpr Einsum::sizeOf(const std::string &letters) {
  Exprs parts;
  for (char letter : letters)
    parts.push_back(sizes[letter]);
  return productOf(parts, e.getContext());
}

Term Einsum::permute(Term term, const std::string &letters) {
  SmallVector<int64_t> permutation;
  for (char letter : letters)
    permutation.push_back(term.letters.find(letter));
  return {e.transpose(term.value, permutation), letters};
}

/// Sums over the letters that nobody needs any more.
Term Einsum::sumAway(Term term, const std::string &kept) {
  SmallVector<int64_t> axes;
  std::string left;
  for (auto [i, letter] : llvm::enumerate(term.letters)) {
    if (kept.find(letter) == std::string::npos)
      axes.push_back(i);
    else
      left += letter;
  }
  if (axes.empty() || !term.value)
    return term;
  return {e.reduce(graph::ReduceKind::sum, term.value, axes, false), left};
}

Term Einsum::multiply(Term a, Term b, const std::string &kept) {
  a = sumAway(a, kept + b.letters);
  b = sumAway(b, kept + a.letters);
  std::string batch, summed, rows, columns;
  for (char letter : a.letters) {
    bool shared = b.letters.find(letter) != std::string::npos;
    (!shared                                  ? rows
     : kept.find(letter) != std::string::npos ? batch
                                              : summed) += letter;
  }
  for (char letter : b.letters)
    if (a.letters.find(letter) == std::string::npos)
      columns += letter;
  // A dimension of 1 broadcasts along its letter.
  auto spread = [&](Term term) {
    Exprs dims;
    for (char letter : term.letters)
      dims.push_back(sizes[letter]);
    return Term{e.broadcast(term.value, dims), term.letters};
  };
  a = permute(spread(a), batch + rows + summed);
  b = permute(spread(b), batch + summed + columns);
  Exprs lead, dims;
  for (char letter : batch)
    lead.push_back(sizes[letter]);
  dims = lead;
  for (char letter : rows + columns)
    dims.push_back(sizes[letter]);
  auto matrix = [&](Value value, const std::string &first,
                    const std::string &second) {
    Exprs shape = lead;
    shape.push_back(sizeOf(first));
    shape.push_back(sizeOf(second));
    return e.reshape(value, shape);
  };
  Value product = e.op<graph::MatmulOp>(
      {matrix(a.value, rows, summed), matrix(b.value, summed, columns)});
  if (product)
    product = e.cast(product, elementOf(a.value));
  return {e.reshape(product, dims), batch + rows + columns};
}

Value Einsum::run() {
  if (failed(parse()))
    return {};
  for (char letter : output)
    if (!sizes.count(letter))
      return e.fail("the equation's output has a letter that no input has");
  Term result = terms.front();
  for (size_t i = 1; i < terms.size() && result.value; ++i) {
    std::string later = output;
    for (Term &term : llvm::drop_begin(terms, i + 1))
      later += term.letters;
    result = multiply(result, terms[i], later);
  }
  result = permute(sumAway(result, output), output);
  Exprs dims;
  for (char letter : output)
    dims.push_back(sizes[letter]);
  return e.broadcast(result.value, dims);
}

Value charonia::frontend::buildEinsum(llvm::StringRef equation,
                                      mlir::ValueRange operands, Emitter &e) {
  // An operand whose fault has been told.
  if (!llvm::all_of(operands, [](Value operand) { return bool(operand); }))
    return {};
  return Einsum(equation, operands, e).run();
}
