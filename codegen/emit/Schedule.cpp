// The cost model: which form of tiles a kernel has, from what its operators say
// of themselves.
#include "codegen/emit/Chooser.h"
#include "codegen/emit/TileEmitter.h"

using namespace mlir;
using namespace charonia;
using namespace charonia::emit;
using graph::DimKind;
using graph::OpRole;

EmitTarget EmitTarget::x86v3() {
  EmitTarget t;
  t.vectorElements = 8;
  t.vectorRegisters = 16;
  return t;
}
EmitTarget EmitTarget::x86v4() { return EmitTarget(); }
EmitTarget EmitTarget::gpu(StringRef chip) {
  EmitTarget t;
  t.kind = Kind::Gpu;
  t.chip = GpuTarget::get(chip);
  assert(t.chip && "a chip that is not known");
  return t;
}

Schedule Chooser::run() {
  if (k.role == OpRole::Ordered)
    ordered();
  else if (k.role == OpRole::Contraction &&
           (hasKind(DimKind::Column) || k.wholeRows))
    contraction();
  else if (k.role == OpRole::RowNormalization && hasKind(DimKind::Whole))
    rows();
  else if (k.role == OpRole::Reduction && k.alongRow)
    reductionAlong();
  else if (!cellsOfChannels() && !oneColumn())
    elementwise();
  for (unsigned i = 0; i < s.groups.size(); ++i)
    if (s.groups[i].tile > 1 && !llvm::is_contained(s.axes, i))
      s.axes.push_back(i);
  assert(llvm::all_of(
      s.groups, [](const Schedule::Group &g) { return g.problem().empty(); }));
  return s;
}

SmallVector<unsigned> Chooser::tiled(ArrayRef<unsigned> groups) {
  SmallVector<unsigned> axes;
  for (unsigned g : groups)
    if (s.groups[g].tile > 1)
      axes.push_back(g);
  return axes;
}

bool emit::growsByRow(graph::KernelOp kernel) {
  return llvm::any_of(kernel.getBody().front().getOps<EmitOpInterface>(),
                      [](EmitOpInterface op) { return op.growsByRow(); });
}

graph::GraphOpInterface emit::orderedOf(graph::KernelOp kernel) {
  Operation *op =
      kernel.getBody().front().getTerminator()->getOperand(0).getDefiningOp();
  auto asked = dyn_cast_or_null<graph::GraphOpInterface>(op);
  return asked && asked.getRole() == OpRole::Ordered
             ? asked
             : graph::GraphOpInterface();
}

Schedule emit::chooseSchedule(graph::KernelOp kernel,
                              const EmitTarget &target) {
  return Chooser(inspect(kernel, target), target).run();
}

std::vector<Schedule> emit::candidateSchedules(graph::KernelOp kernel,
                                               const EmitTarget &target,
                                               unsigned most) {
  KernelShape shape = inspect(kernel, target);
  std::vector<Schedule> candidates;
  unsigned alternatives = 1;
  for (unsigned i = 0; i < std::min(alternatives, most); ++i) {
    Chooser chooser(shape, target, i);
    candidates.push_back(chooser.run());
    alternatives = chooser.alternatives();
  }
  return candidates;
}

std::optional<Schedule> emit::narrower(const Schedule &schedule) {
  constexpr int64_t least = 16, someFeatures = 256;
  Schedule s = schedule;
  if (s.featureTile == 0)
    s.featureTile = 2 * someFeatures;
  // Shorter steps read no more than long ones, smaller tiles do.
  for (int64_t *step : {&s.keyTile, &s.kTile, &s.featureTile})
    if (*step > least) {
      *step = llvm::bit_floor<uint64_t>(*step - 1);
      return s;
    }
  Schedule::Group *widest = nullptr;
  for (unsigned axis : s.axes)
    if (Schedule::Group &g = s.groups[axis];
        !g.sequential && g.tile > least && (!widest || g.tile > widest->tile))
      widest = &g;
  if (!widest)
    return std::nullopt;
  widest->tile = llvm::bit_floor<uint64_t>(widest->tile - 1);
  widest->own = 0;
  return s;
}

FailureOr<Schedule> emit::scheduleOf(graph::KernelOp kernel,
                                     const EmitTarget &target) {
  if (DictionaryAttr given = kernel.getScheduleAttr())
    return Schedule::fromAttribute(given, kernel.getLoc());
  return chooseSchedule(kernel, target);
}
