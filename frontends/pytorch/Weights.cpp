#include "frontends/pytorch/Weights.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/common/Json.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::SmallVector;
using llvm::StringRef;

static const char *const againRemedy = "export the program again";
/// The file's code for dense tensors.
constexpr int stridedLayout = 7;

std::optional<Problem> Weights::addConfiguration(StringRef entry) {
  Problem problem;
  auto bytes = archive.load(entry, problem);
  if (!bytes)
    return problem;
  auto fail = [&](const std::string &what) {
    return Problem{"entry '" + printable(entry.str()) + "': " + what,
                   againRemedy};
  };
  std::string damage;
  auto value = JsonText::parse(bytes->text(), damage);
  if (!value)
    return fail(damage);
  Json::Report report;
  ExpressionParser expressions;
  std::string folder = entry.take_front(entry.rfind('/') + 1).str();
  for (const auto &[name, tensor] :
       Json(*value, "", report)["config"].fields()) {
    Source source;
    source.pickled = tensor["use_pickle"].boolean(false);
    source.entry = folder + tensor["path_name"].string();
    if (!source.pickled || tensor["tensor_meta"])
      source.meta = readTensorMeta(tensor["tensor_meta"], expressions);
    if (replacements)
      replacements->know(name);
    sources.try_emplace(name, std::move(source));
  }
  if (!report.problem.empty())
    return fail(report.problem);
  return std::nullopt;
}

const TensorMeta *Weights::metaOf(StringRef name) const {
  auto it = sources.find(name);
  return it == sources.end() ? nullptr : &it->second.meta;
}

namespace {
/// A view of a storage, in elements.
struct Strided {
  SmallVector<int64_t> sizes, strides;
  int64_t offset = 0;
  int64_t rank() const { return sizes.size(); }
};

/// Dense dimensions of which a view is a permutation and broadcast.
struct Dense {
  /// The view's dimensions, outermost first.
  SmallVector<int64_t> order;
  /// Extents in that order; 1 where the view repeats elements.
  SmallVector<int64_t> shape;
};
} // namespace

static std::optional<Strided> numbersOf(const TensorMeta &meta,
                                        Problem &problem) {
  Strided view;
  bool known = meta.sizes.size() == meta.strides.size();
  auto add = [&](const std::vector<ExpressionPtr> &from,
                 SmallVector<int64_t> &to) {
    for (const ExpressionPtr &expression : from) {
      auto number = integerOf(expression);
      known &= number && *number >= 0;
      to.push_back(number.value_or(0));
    }
  };
  add(meta.sizes, view.sizes);
  add(meta.strides, view.strides);
  auto offset = integerOf(meta.offset);
  known &= offset && *offset >= 0;
  view.offset = offset.value_or(0);
  if (known && meta.layout == stridedLayout)
    return view;
  problem = meta.layout == stridedLayout
                ? Problem{"has sizes and strides that are no numbers of the "
                          "same count, or negative",
                          againRemedy}
                : Problem{"is no dense tensor",
                          "convert it with to_dense() before exporting"};
  return std::nullopt;
}

/// The bytes from the view's first element to its last; none where the storage
/// has fewer.
static std::optional<llvm::ArrayRef<char>>
extentOf(const Strided &view, llvm::ArrayRef<char> storage, int64_t size,
         Problem &problem) {
  int64_t last = view.offset, begin, end;
  bool overflows = false;
  for (auto [extent, stride] : llvm::zip_equal(view.sizes, view.strides)) {
    int64_t step;
    overflows |= llvm::MulOverflow(extent - 1, stride, step) ||
                 llvm::AddOverflow(last, step, last);
  }
  overflows |= llvm::MulOverflow(view.offset, size, begin) ||
               llvm::AddOverflow(last, int64_t(1), last) ||
               llvm::MulOverflow(last, size, end);
  if (!overflows && end <= static_cast<int64_t>(storage.size()))
    return storage.slice(begin, end - begin);
  problem = {"reaches behind its storage, which has " +
                 std::to_string(storage.size()) + " bytes",
             "the file is damaged: fetch or export it again"};
  return std::nullopt;
}

/// The view's dimensions as they lie in memory, if they lie densely.
static std::optional<Dense> denseForm(const Strided &view) {
  Dense dense;
  dense.order = llvm::to_vector(llvm::seq<int64_t>(0, view.rank()));
  auto isOne = [&](int64_t d) {
    return view.sizes[d] == 1 || view.strides[d] == 0;
  };
  auto fits = [&] {
    int64_t stride = 1;
    for (int64_t d : llvm::reverse(dense.order)) {
      if (isOne(d))
        continue;
      if (view.strides[d] != stride)
        return false;
      stride *= view.sizes[d];
    }
    return true;
  };
  // Row-major as it is, or in the order of strides.
  if (!fits()) {
    llvm::stable_sort(dense.order, [&](int64_t a, int64_t b) {
      return view.strides[a] > view.strides[b];
    });
    if (!fits())
      return std::nullopt;
  }
  for (int64_t d : dense.order)
    dense.shape.push_back(isOne(d) ? 1 : view.sizes[d]);
  return dense;
}

/// The elements one after another, for views with gaps.
static std::vector<char> gathered(const Strided &view,
                                  llvm::ArrayRef<char> bytes, int64_t elements,
                                  int64_t size) {
  std::vector<char> result(elements * size);
  SmallVector<int64_t> index(view.rank());
  int64_t from = 0;
  for (int64_t i = 0; i < elements; ++i) {
    std::memcpy(result.data() + i * size, bytes.data() + from * size, size);
    for (int64_t d = view.rank() - 1; d >= 0; --d) {
      // The stride of a single one says nothing, and may be anything.
      if (view.sizes[d] == 1)
        continue;
      from += view.strides[d];
      if (++index[d] < view.sizes[d])
        break;
      from -= view.strides[d] * view.sizes[d];
      index[d] = 0;
    }
  }
  return result;
}

/// `copied` counts bytes that are not mapped, up to `limit`.
static mlir::Value viewOf(const Strided &view, mlir::Type element,
                          const Archive::Bytes &storage, StringRef name,
                          int64_t &copied, int64_t limit, Emitter &emitter,
                          Problem &problem) {
  int64_t elements, bytes, size = graph::elementBytes(element);
  auto type = denseType(element, view.sizes, elements, bytes, problem);
  if (!type)
    return {};
  if (elements == 0)
    return materialize({type, {}, {}}, name, emitter);
  auto extent = extentOf(view, storage.bytes, size, problem);
  if (!extent)
    return {};
  if (auto dense = denseForm(view)) {
    auto inMemory = mlir::RankedTensorType::get(dense->shape, element);
    mlir::Value value = materialize(
        normalizeBools({inMemory, *extent, storage.owner}), name, emitter);
    SmallVector<int64_t> permutation(view.rank());
    for (auto [place, d] : llvm::enumerate(dense->order))
      permutation[d] = place;
    return emitter.broadcast(emitter.transpose(value, permutation),
                             emitter.numbers(view.sizes));
  }
  // Rows with gaps between them; what overlaps would be a way to be huge, and
  // so would many views of one storage.
  constexpr int64_t small = int64_t(1) << 16;
  if (bytes > small && bytes > static_cast<int64_t>(storage.bytes.size())) {
    problem = {"has elements that overlap in memory",
               "make it contiguous() before exporting"};
    return {};
  }
  if (bytes > limit - copied) {
    problem = {"is one of many views with gaps: they would take more than " +
                   std::to_string(limit) + " bytes",
               "make them contiguous() before exporting"};
    return {};
  }
  copied += bytes;
  return materialize(normalizeBools(ownedTensor(
                         type, gathered(view, *extent, elements, size))),
                     name, emitter);
}

/// Complex numbers as pairs in a last dimension of two.
static bool splitParts(Strided &view, Problem &problem) {
  bool overflows = llvm::MulOverflow(view.offset, int64_t(2), view.offset);
  for (int64_t &stride : view.strides)
    overflows |= llvm::MulOverflow(stride, int64_t(2), stride);
  view.sizes.push_back(2);
  view.strides.push_back(1);
  if (overflows)
    problem = {"reaches behind its storage",
               "the file is damaged: fetch or export it again"};
  return !overflows;
}

/// Where a tensor lies: equal for those that are all one.
static std::string placeOf(const std::string &entry, const TensorMeta &meta) {
  std::string place = entry + " " + std::to_string(meta.dtype);
  auto add = [&](const ExpressionPtr &number) {
    place += " " + std::to_string(integerOf(number).value_or(-1));
  };
  add(meta.offset);
  for (const ExpressionPtr &size : meta.sizes)
    add(size);
  place += " :";
  for (const ExpressionPtr &stride : meta.strides)
    add(stride);
  return place;
}

/// The name under which a tensor is replaced: of tied ones a file of weights
/// has but one.
std::string Weights::replacedName(StringRef name, const std::string &place) {
  if (replacements->has(name))
    return name.str();
  if (!std::exchange(knowsPlaces, true))
    for (const auto &source : sources)
      if (!source.second.pickled && replacements->has(source.first()))
        replacedAt[placeOf(source.second.entry, source.second.meta)] =
            source.first().str();
  auto it = replacedAt.find(place);
  return it == replacedAt.end() ? name.str() : it->second;
}

mlir::Value Weights::load(StringRef name, Emitter &emitter, Problem &problem) {
  auto it = sources.find(name);
  if (it == sources.end()) {
    problem = {"is not among the file's weights", againRemedy};
    return {};
  }
  const Source &source = it->second;
  if (source.pickled) {
    problem = {"is stored as a pickle, which is never read",
               "export the model with plain tensors as parameters, without "
               "quantized or other subclasses of torch.Tensor"};
    return {};
  }
  mlir::Type element = partType(source.meta.dtype, emitter.getContext());
  if (!element) {
    problem = {"is of " + dtypeName(source.meta.dtype) +
                   ", which is not supported",
               "convert the model to float32, float16 or bfloat16 before "
               "exporting"};
    return {};
  }
  std::optional<Strided> view = numbersOf(source.meta, problem);
  if (!view)
    return {};
  if (isComplex(source.meta.dtype) && !splitParts(*view, problem))
    return {};
  std::string key = placeOf(source.entry, source.meta);
  std::string replaced;
  if (replacements && isComplex(source.meta.dtype) && replacements->has(name)) {
    problem = {"is of complex numbers, which --weights cannot replace",
               "leave it out of the file of weights"};
    return {};
  }
  if (replacements && !isComplex(source.meta.dtype)) {
    replaced = replacedName(name, key);
    if (replacements->has(replaced))
      key = "of " + replaced;
  }
  if (auto known = loaded.find(key); known != loaded.end())
    return known->second;
  if (!replaced.empty()) {
    int64_t elements, bytes;
    auto type = denseType(element, view->sizes, elements, bytes, problem);
    if (!type)
      return {};
    if (auto data = replacements->find(replaced, type))
      return loaded[key] = materialize(*data, replaced, emitter);
  }
  auto storage = archive.load(source.entry, problem);
  if (!storage)
    return {};
  constexpr int64_t copyFloor = int64_t(1) << 26, copyFactor = 4;
  int64_t copyLimit =
      copyFloor + copyFactor * static_cast<int64_t>(archive.fileSize());
  mlir::Value value = viewOf(*view, element, *storage, name, copied, copyLimit,
                             emitter, problem);
  if (value)
    loaded[key] = value;
  return value;
}
