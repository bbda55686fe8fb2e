#include "codegen/driver/Activity.h"
#include "mlir/Pass/Pass.h"
#include "support/Text.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace charonia::driver {

/// Kernels that a report of costs names.
static constexpr size_t mostKernels = 5;
/// Nodes of a kernel that a message names.
static constexpr size_t mostNodes = 4;
/// Bytes of a node's name in a message.
static constexpr size_t mostName = 200;

static double since(Activity::Clock::time_point start) {
  return std::chrono::duration<double>(Activity::Clock::now() - start).count();
}

void Activity::enter(StringRef name) {
  std::lock_guard lock(mutex);
  if (stage == name)
    return;
  finished = stagesLocked();
  stage = name.str();
  busyWith.clear();
  stageStart = Clock::now();
}

void Activity::note(StringRef what) {
  std::lock_guard lock(mutex);
  busyWith = what.str();
}

Activity::Kernel::Kernel(Activity *activity, std::string name,
                         std::vector<std::string> nodes)
    : activity(activity), name(std::move(name)), nodes(std::move(nodes)) {
  if (!activity)
    return;
  std::lock_guard lock(activity->mutex);
  place = activity->kernels.insert(activity->kernels.end(), this);
}

Activity::Kernel::~Kernel() {
  if (!activity)
    return;
  std::lock_guard lock(activity->mutex);
  activity->kernels.erase(place);
  std::vector<Cost> &slowest = activity->slowest;
  Cost cost{name, since(start)};
  slowest.insert(llvm::upper_bound(slowest, cost,
                                   [](const Cost &a, const Cost &b) {
                                     return a.seconds > b.seconds;
                                   }),
                 cost);
  if (slowest.size() > mostKernels)
    slowest.pop_back();
}

double Activity::seconds() const { return since(start); }

std::vector<Activity::Cost> Activity::stagesLocked() const {
  std::vector<Cost> all = finished;
  double seconds = since(stageStart);
  auto known =
      llvm::find_if(all, [&](const Cost &cost) { return cost.name == stage; });
  if (known != all.end())
    known->seconds += seconds;
  else
    all.push_back({stage, seconds});
  return all;
}

std::vector<Activity::Cost> Activity::stages() const {
  std::lock_guard lock(mutex);
  return stagesLocked();
}

std::vector<Activity::Cost> Activity::slowestKernels() const {
  std::lock_guard lock(mutex);
  return slowest;
}

std::string Activity::describe() const {
  std::lock_guard lock(mutex);
  std::string text = "stage '" + stage + "'";
  if (!busyWith.empty())
    text += ", " + busyWith;
  for (const Kernel *kernel : kernels) {
    text += ", kernel " + kernel->name;
    for (const auto &[i, node] : llvm::enumerate(kernel->nodes)) {
      if (i == mostNodes) {
        text += llvm::formatv(" and {0} more", kernel->nodes.size() - i);
        break;
      }
      text += (i ? ", '" : " (of nodes '") + printable(node, mostName) + "'";
    }
    text += kernel->nodes.empty() ? "" : ")";
    text += llvm::formatv(" for {0:F1} s", since(kernel->start));
  }
  text += "\n  time so far:";
  for (const auto &[i, cost] : llvm::enumerate(stagesLocked()))
    text += (i ? ", " : " ") + cost.name +
            llvm::formatv(" {0:F1} s", cost.seconds).str();
  return text;
}

void PassActivity::runBeforePass(Pass *pass, Operation *) {
  StringRef name = pass->getArgument();
  if (!name.empty())
    activity.note(("pass '" + name + "'").str());
}

} // namespace charonia::driver
