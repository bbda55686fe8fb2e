// Schedules as attributes and as text.
#include "codegen/emit/Schedule.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;

int64_t Schedule::Group::covered(int64_t extent) const {
  if (within)
    return extent / within * llvm::alignTo(within, tile);
  int64_t left = extent % step();
  if (rest == 0 || left == 0)
    return llvm::divideCeil(extent, step()) * tile;
  int64_t last = left % rest;
  int64_t taken = last;
  if (last > singles)
    taken = std::max<int64_t>(llvm::bit_ceil<uint64_t>(last), shortest);
  return extent - last + taken;
}

std::string Schedule::text() const {
  std::string text = "tiles";
  for (const Group &g : groups) {
    text += " ";
    for (auto [i, dim] : llvm::enumerate(g.dims))
      text += (i ? "." : "") + std::to_string(dim);
    text += ":" + std::to_string(g.tile);
    if (g.own)
      text += "/" + std::to_string(g.own);
    if (g.within)
      text += "%" + std::to_string(g.within);
    if (g.rest)
      text += "+" + std::to_string(g.rest);
    if (g.rest && g.shortest > 1)
      text += ".." + std::to_string(g.shortest);
    if (g.rest && g.singles)
      text += "," + std::to_string(g.singles);
    if (g.vector)
      text += "|1";
    if (g.sequential)
      text += "*";
  }
  text += ", axes";
  for (unsigned axis : axes)
    text += " " + std::to_string(axis);
  Schedule plain;
  for (auto [name, value, usual] :
       {std::tuple("k", kTile, plain.kTile),
        {"keys", keyTile, plain.keyTile},
        {"features", featureTile, plain.featureTile},
        {"warps", warps, plain.warps},
        {"stages", stages, plain.stages},
        {"residents", residents, plain.residents},
        {"parts", splits, plain.splits},
        {"row parts", rowParts, plain.rowParts},
        {"run", run, plain.run},
        {"section", section, plain.section}})
    if (value != usual)
      text += std::string(", ") + name + " " + std::to_string(value);
  return text + (swap ? ", across" : "") + (alongTerms ? ", along terms" : "");
}

DictionaryAttr Schedule::toAttribute(MLIRContext *context) const {
  Builder b(context);
  SmallVector<Attribute> list;
  for (const Group &g : groups)
    list.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("dims", b.getDenseI64ArrayAttr(SmallVector<int64_t>(
                                    g.dims.begin(), g.dims.end()))),
         b.getNamedAttr("tile", b.getI64IntegerAttr(g.tile)),
         b.getNamedAttr("own", b.getI64IntegerAttr(g.own)),
         b.getNamedAttr("within", b.getI64IntegerAttr(g.within)),
         b.getNamedAttr("rest", b.getI64IntegerAttr(g.rest)),
         b.getNamedAttr("shortest", b.getI64IntegerAttr(g.shortest)),
         b.getNamedAttr("singles", b.getI64IntegerAttr(g.singles)),
         b.getNamedAttr("vector", b.getBoolAttr(g.vector)),
         b.getNamedAttr("sequential", b.getBoolAttr(g.sequential))}));
  return b.getDictionaryAttr(
      {b.getNamedAttr("groups", b.getArrayAttr(list)),
       b.getNamedAttr("axes", b.getDenseI64ArrayAttr(SmallVector<int64_t>(
                                  axes.begin(), axes.end()))),
       b.getNamedAttr("run", b.getI64IntegerAttr(run)),
       b.getNamedAttr("section", b.getI64IntegerAttr(section)),
       b.getNamedAttr("k_tile", b.getI64IntegerAttr(kTile)),
       b.getNamedAttr("key_tile", b.getI64IntegerAttr(keyTile)),
       b.getNamedAttr("feature_tile", b.getI64IntegerAttr(featureTile)),
       b.getNamedAttr("warps", b.getI64IntegerAttr(warps)),
       b.getNamedAttr("stages", b.getI64IntegerAttr(stages)),
       b.getNamedAttr("residents", b.getI64IntegerAttr(residents)),
       b.getNamedAttr("swap", b.getBoolAttr(swap)),
       b.getNamedAttr("along_terms", b.getBoolAttr(alongTerms)),
       b.getNamedAttr("splits", b.getI64IntegerAttr(splits)),
       b.getNamedAttr("row_parts", b.getI64IntegerAttr(rowParts))});
}

StringRef Schedule::Group::problem() const {
  if (vector && (dims.size() != 1 || own || sequential))
    return "a group of a schedule with a 'vector' is one dimension of the "
           "grid, without 'own'";
  if (within < 0 || (within && (own || rest || vector || sequential)))
    return "a group of a schedule with a 'within' is one of the grid, without "
           "'own', 'rest' and 'vector'";
  if (!rest)
    return "";
  bool isShorter = llvm::isPowerOf2_64(rest) && rest <= tile &&
                   llvm::isPowerOf2_64(shortest) && shortest <= rest;
  if (!isShorter || own || sequential)
    return "the 'rest' of a schedule's group is a power of two up to 'tile', "
           "and 'shortest' one up to 'rest', in a group of the grid without "
           "'own'";
  if (singles < 0 || singles > rest || (singles > 1 && rest != tile))
    return "the 'singles' of a schedule's group are 0, 1, or, where 'rest' is "
           "'tile', up to that";
  return "";
}

static FailureOr<Schedule::Group> readGroup(Attribute attribute,
                                            Location location) {
  auto d = dyn_cast<DictionaryAttr>(attribute);
  auto dims = d ? d.getAs<DenseI64ArrayAttr>("dims") : nullptr;
  auto tile = d ? d.getAs<IntegerAttr>("tile") : nullptr;
  auto sequential = d ? d.getAs<BoolAttr>("sequential") : nullptr;
  if (!dims || !tile || tile.getInt() < 1)
    return mlir::emitError(
        location, "a group of a schedule needs 'dims' and a positive 'tile'");
  Schedule::Group g;
  g.dims.assign(dims.asArrayRef().begin(), dims.asArrayRef().end());
  g.tile = tile.getInt();
  if (auto own = d.getAs<IntegerAttr>("own"))
    g.own = own.getInt();
  if (g.own < 0 || g.own > g.tile)
    return mlir::emitError(
        location, "a tile of a schedule has no more elements of its 'own' than "
                  "'tile' says");
  if (auto within = d.getAs<IntegerAttr>("within"))
    g.within = within.getInt();
  g.sequential = sequential && sequential.getValue();
  if (auto rest = d.getAs<IntegerAttr>("rest"))
    g.rest = rest.getInt();
  if (auto shortest = d.getAs<IntegerAttr>("shortest"))
    g.shortest = shortest.getInt();
  if (auto singles = d.getAs<IntegerAttr>("singles"))
    g.singles = singles.getInt();
  if (auto vector = d.getAs<BoolAttr>("vector"))
    g.vector = vector.getValue();
  if (StringRef problem = g.problem(); !problem.empty())
    return mlir::emitError(location, problem);
  return g;
}

FailureOr<Schedule> Schedule::fromAttribute(DictionaryAttr attribute,
                                            Location location) {
  Schedule s;
  auto list = attribute.getAs<ArrayAttr>("groups");
  auto order = attribute.getAs<DenseI64ArrayAttr>("axes");
  if (!list || !order)
    return mlir::emitError(location, "a schedule needs 'groups' and 'axes'");
  for (Attribute a : list) {
    FailureOr<Group> group = readGroup(a, location);
    if (failed(group))
      return failure();
    s.groups.push_back(std::move(*group));
  }
  if (llvm::count_if(s.groups, [](const Group &g) { return g.rest > 0; }) > 1)
    return mlir::emitError(location,
                           "only one group of a schedule has a 'rest'");
  if (llvm::count_if(s.groups, [](const Group &g) { return g.vector; }) > 1)
    return mlir::emitError(location,
                           "only one group of a schedule has a 'vector'");
  for (int64_t axis : order.asArrayRef()) {
    if (axis < 0 || axis >= (int64_t)s.groups.size())
      return mlir::emitError(location, "an axis of a schedule names no group");
    s.axes.push_back(axis);
  }
  for (auto [name, value] : {std::pair("run", &s.run),
                             {"section", &s.section},
                             {"k_tile", &s.kTile},
                             {"key_tile", &s.keyTile},
                             {"feature_tile", &s.featureTile},
                             {"warps", &s.warps},
                             {"stages", &s.stages},
                             {"residents", &s.residents},
                             {"splits", &s.splits},
                             {"row_parts", &s.rowParts}})
    if (auto i = attribute.getAs<IntegerAttr>(name))
      *value = i.getInt();
  if (auto swap = attribute.getAs<BoolAttr>("swap"))
    s.swap = swap.getValue();
  if (auto along = attribute.getAs<BoolAttr>("along_terms"))
    s.alongTerms = along.getValue();
  if (s.run < 0 || s.section < 0)
    return mlir::emitError(
        location, "'run' and 'section' of a schedule are not negative");
  if (s.splits < 1 || s.residents < 1 || s.rowParts < 1)
    return mlir::emitError(location, "'splits', 'residents' and 'row_parts' of "
                                     "a schedule are positive");
  return s;
}
