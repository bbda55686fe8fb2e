#include "codegen/driver/Tuner.h"
#include "codegen/driver/Convert.h"
#include "codegen/driver/Silence.h"
#include "codegen/driver/TrialEngine.h"
#include "codegen/driver/Work.h"
#include "codegen/emit/Schedule.h"
#include "graph/analysis/Updates.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cmath>

using namespace mlir;

namespace charonia::driver {
namespace {

/// A schedule that competes for a kernel, with what is compiled of it.
struct Candidate {
  emit::Schedule schedule;
  uint32_t rank; ///< By the cost model, from 1.
  OwningOpRef<ModuleOp> module;
  std::string program; ///< The tile program as text.
  std::optional<CompiledKernel> compiled;
  std::unique_ptr<Trial> trial;
  std::vector<double> seconds;
  bool dropped = false;

  graph::KernelOp kernel() const {
    graph::KernelOp found;
    (*module)->walk([&](graph::KernelOp op) { found = op; });
    return found;
  }
  double least() const { return *llvm::min_element(seconds); }
  double median() const {
    std::vector<double> sorted = seconds;
    llvm::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

class Tuner {
public:
  Tuner(const KernelSet &kernels, ArrayRef<unsigned> launches,
        TilePrograms &programs, Backend &backend, TuningCache &cache,
        const TuningOptions &options)
      : kernels(kernels), launches(launches), programs(programs),
        backend(backend), cache(cache), options(options) {}

  FailureOr<TuningReport> run() {
    report.entries.resize(kernels.size());
    // Kernels that differ in what they may run beside are measured once.
    llvm::MapVector<StringRef, SmallVector<unsigned, 1>> alike;
    for (unsigned i = 0; i < kernels.size(); ++i)
      if (!lookUp(i))
        alike[kernels.contentAlone(i)].push_back(i);
    SmallVector<unsigned> unknown;
    llvm::DenseMap<unsigned, ArrayRef<unsigned>> twins;
    for (auto &[content, numbers] : alike) {
      unknown.push_back(numbers.front());
      twins[numbers.front()] = ArrayRef(numbers).drop_front();
    }
    if (!options.timer || unknown.empty()) {
      report.left = unknown.size();
      return std::move(report);
    }
    if (failed(findDevice(unknown.size())))
      return failure();
    llvm::DenseMap<unsigned, double> weights;
    for (unsigned number : unknown) {
      weights[number] = weightOf(number);
      for (unsigned twin : twins.at(number))
        weights[number] += weightOf(twin);
    }
    llvm::stable_sort(unknown, [&](unsigned a, unsigned b) {
      return weights.at(a) > weights.at(b);
    });
    for (auto [done, number] : llvm::enumerate(unknown)) {
      if (options.progress)
        options.progress(done, unknown.size());
      if (options.seconds && passed() >= *options.seconds) {
        report.left = unknown.size() - done;
        break;
      }
      if (failed(tune(number)))
        return failure();
      for (unsigned twin : twins.at(number))
        takeFrom(number, twin);
    }
    report.seconds = passed();
    return std::move(report);
  }

private:
  double passed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  }

  std::vector<emit::Schedule> candidatesOf(unsigned number) const {
    graph::KernelOp kernel = kernels.get(number);
    if (kernel.getScheduleAttr() || graph::getUpdatedInput(kernel))
      return {};
    return emit::candidateSchedules(kernel, backend.emitTarget(),
                                    maxCandidates);
  }

  /// False where the kernel has to be measured.
  bool lookUp(unsigned number) {
    std::vector<emit::Schedule> candidates = candidatesOf(number);
    if (candidates.size() < 2)
      return true;
    ++report.kernels;
    const TuningEntry *entry =
        cache.find(backend.arch(), tuningKey(kernels, number, backend));
    if (!entry)
      return false;
    // Of a cache nothing is believed but which of our own schedules it means.
    auto chosen = llvm::find_if(candidates, [&](const emit::Schedule &s) {
      return s.text() == entry->schedule;
    });
    if (chosen == candidates.end())
      return false;
    ++report.known;
    use(number, *chosen, *entry);
    return true;
  }

  void use(unsigned number, const emit::Schedule &schedule,
           const TuningEntry &entry) {
    graph::KernelOp kernel = kernels.get(number);
    programs.forget(kernels, number, backend); // it was of the cost model
    kernel.setScheduleAttr(schedule.toAttribute(kernel.getContext()));
    report.entries[number] = entry;
  }

  /// The schedule of a kernel that was measured, for one that is alike.
  void takeFrom(unsigned number, unsigned twin) {
    programs.forget(kernels, twin, backend);
    graph::KernelOp kernel = kernels.get(twin);
    kernel.setScheduleAttr(kernels.get(number).getScheduleAttr());
    report.entries[twin] = report.entries[number];
  }

  LogicalResult findDevice(unsigned missing) {
    Result<std::string> found =
        options.timer->deviceFor(backend.device(), backend.arch());
    if (found) {
      device = *found;
      return success();
    }
    InFlightDiagnostic error =
        emitError(UnknownLoc::get(kernels.get(0)->getContext()));
    error << "kernels for " << backend.arch()
          << " cannot be tuned here: " << found.status().message() << "; "
          << missing << " of " << report.kernels
          << " have no entry in a tuning cache";
    error.attachNote() << "remedy: tune on a machine that has the device and "
                          "bring its --tuning-cache FILE here, or compile "
                          "without --tune";
    return failure();
  }

  /// About how much of a run is spent in the kernel.
  double weightOf(unsigned number) const {
    return (1 + costOf(kernels.get(number))) * launches[number];
  }

  /// Writes and compiles the candidates on all threads. What is no kernel, or
  /// the same tile program as a better one, is left out; the first is the cost
  /// model's choice, which has to be one.
  FailureOr<std::vector<Candidate>>
  compile(unsigned number, ArrayRef<emit::Schedule> schedules) {
    graph::KernelOp kernel = kernels.get(number);
    std::vector<Candidate> candidates;
    for (auto [i, schedule] : llvm::enumerate(schedules)) {
      candidates.push_back({schedule, uint32_t(i + 1)});
      candidates.back().module =
          cast<ModuleOp>(kernel->getParentOfType<ModuleOp>()->clone());
      graph::KernelOp own = candidates.back().kernel();
      own.setScheduleAttr(schedule.toAttribute(kernel.getContext()));
      // Launches of a trial follow one another.
      takeMarks(own);
    }
    std::vector<std::optional<TileProgram>> written(candidates.size());
    auto onAll = [&](auto step) {
      parallelFor(kernel.getContext(), 0, candidates.size(), [&](size_t i) {
        std::optional<Silence> silence;
        if (i != 0)
          silence.emplace(kernel.getContext());
        step(i);
      });
    };
    onAll([&](size_t i) {
      FailureOr<TileProgram> made =
          makeTileProgram(candidates[i].kernel(), backend);
      if (failed(made))
        return;
      llvm::raw_string_ostream stream(candidates[i].program);
      made->function()->print(stream, OpPrintingFlags().useLocalScope());
      written[i] = std::move(*made);
    });
    for (size_t i = 1; i < candidates.size(); ++i)
      if (llvm::any_of(ArrayRef(candidates).take_front(i),
                       [&](const Candidate &other) {
                         return other.program == candidates[i].program;
                       }))
        written[i].reset();
    onAll([&](size_t i) {
      if (!written[i])
        return;
      FailureOr<CompiledKernel> compiled = compileProgram(
          candidates[i].kernel(), *written[i], backend, options.kernelCache);
      if (succeeded(compiled))
        candidates[i].compiled = std::move(*compiled);
    });
    if (!candidates.front().compiled)
      return failure();
    llvm::erase_if(candidates, [](const Candidate &c) { return !c.compiled; });
    return candidates;
  }

  InFlightDiagnostic cannotMeasure(unsigned number, const Status &status) {
    graph::KernelOp kernel = kernels.get(number);
    return emitError(kernel.getLoc())
           << "kernel '" << kernel.getSymName() << "' cannot be measured on "
           << device << ": " << status.message();
  }

  /// Loads what there is on the device. A candidate that cannot be is left out,
  /// unless it is the cost model's.
  LogicalResult load(unsigned number, std::vector<Candidate> &candidates) {
    graph::KernelOp kernel = kernels.get(number);
    unsigned count = trialLaunches(kernel, backend.device());
    std::vector<TrialEngine> engines;
    for (const Candidate &c : candidates) {
      auto bytes = makeTrialEngine(kernel, *c.compiled, backend, count);
      if (!bytes)
        return cannotMeasure(number, bytes.status()), failure();
      engines.push_back({std::move(*bytes), c.schedule.text()});
    }
    auto trials =
        options.timer->load(engines, backend.device(), backend.arch());
    if (!trials.front())
      return cannotMeasure(number, trials.front().status()), failure();
    for (auto [candidate, trial] : llvm::zip_equal(candidates, trials))
      if (trial)
        candidate.trial = std::move(*trial);
    llvm::erase_if(candidates, [](const Candidate &c) { return !c.trial; });
    trialCount = count;
    return success();
  }

  /// Runs each candidate once and compares what it computes with the cost
  /// model's choice. What differs is a mistake of the compiler, and out.
  LogicalResult check(unsigned number, std::vector<Candidate> &candidates) {
    graph::KernelOp kernel = kernels.get(number);
    std::vector<double> wanted;
    for (auto &&[i, candidate] : llvm::enumerate(candidates)) {
      if (Result<double> time = candidate.trial->run(); !time)
        return cannotMeasure(number, time.status()), failure();
      Result<std::vector<double>> found = candidate.trial->results();
      if (!found)
        return cannotMeasure(number, found.status()), failure();
      if (i == 0) {
        wanted = std::move(*found);
      } else if (!agree(wanted, *found)) {
        emitWarning(kernel.getLoc())
            << "kernel '" << kernel.getSymName() << "' computes something else "
            << "on " << device << " with the schedule '"
            << candidate.schedule.text()
            << "', which is left out: this is a mistake of the compiler, "
               "please report it";
        candidate.trial.reset();
      }
    }
    llvm::erase_if(candidates, [](const Candidate &c) { return !c.trial; });
    return success();
  }

  /// Sums in another order, of values that were rounded to 16 bits.
  static bool agree(ArrayRef<double> wanted, ArrayRef<double> found) {
    constexpr double tolerance = 0.02;
    if (wanted.size() != found.size())
      return false;
    double largest = 0;
    for (double value : wanted)
      if (std::isfinite(value))
        largest = std::max(largest, std::abs(value));
    for (auto [a, b] : llvm::zip_equal(wanted, found))
      if (std::isfinite(a) && !(std::abs(a - b) <= tolerance * largest))
        return false;
    return true;
  }

  /// Rounds over all candidates by turns, so that what disturbs one disturbs
  /// all. What is clearly slower ends early; the cost model's choice stays.
  LogicalResult measure(unsigned number, std::vector<Candidate> &candidates) {
    // After each round, by how much a candidate may be behind the fastest.
    for (double most : {1.5, 1.25, 1.15, 1.1, 1.1, 1.05, 1.05, 1.05, 1.05}) {
      double fastest = std::numeric_limits<double>::infinity();
      for (Candidate &c : candidates) {
        if (c.dropped)
          continue;
        Result<double> time = c.trial->run();
        if (!time)
          return cannotMeasure(number, time.status()), failure();
        c.seconds.push_back(std::max(*time, 1e-9) / trialCount);
        fastest = std::min(fastest, c.least());
      }
      for (Candidate &c : llvm::drop_begin(candidates))
        c.dropped |= c.least() > most * fastest;
    }
    return success();
  }

  LogicalResult tune(unsigned number) {
    graph::KernelOp kernel = kernels.get(number);
    Activity::Kernel working(
        options.activity, kernel.getSymName().str() + " for " + backend.arch(),
        nodeNames(kernel.getLoc()));
    std::vector<emit::Schedule> schedules = candidatesOf(number);
    FailureOr<std::vector<Candidate>> made = compile(number, schedules);
    if (failed(made) || failed(load(number, *made)) ||
        failed(check(number, *made)) || failed(measure(number, *made)))
      return failure();
    // A lead that is less than what a measurement repeats to is none.
    constexpr double leastGain = 1.01;
    const Candidate *best = &made->front();
    for (const Candidate &c : *made)
      if (!c.dropped && c.median() < best->median() &&
          c.median() * leastGain < made->front().median())
        best = &c;
    auto nanoseconds = [](double seconds) {
      return std::max<uint64_t>(1, std::llround(seconds * 1e9));
    };
    TuningEntry entry{best->schedule.text(),
                      device,
                      nanoseconds(best->median()),
                      nanoseconds(made->front().median()),
                      best->rank,
                      uint32_t(schedules.size())};
    MeasuredKernel measured{kernel.getSymName().str(), {}};
    for (const Candidate &c : *made)
      measured.candidates.push_back({c.schedule.text(), c.rank, c.median()});
    report.measured.push_back(std::move(measured));
    cache.set(backend.arch(), tuningKey(kernels, number, backend), entry);
    use(number, best->schedule, entry);
    if (Status kept = options.keep ? options.keep() : Status::ok(); !kept)
      return emitError(UnknownLoc::get(kernel.getContext()))
                 << "what was measured cannot be kept: " << kept.message(),
             failure();
    return success();
  }

  const KernelSet &kernels;
  ArrayRef<unsigned> launches;
  TilePrograms &programs;
  Backend &backend;
  TuningCache &cache;
  const TuningOptions &options;
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  TuningReport report;
  std::string device;
  unsigned trialCount = 1; ///< Launches of a trial.
};

} // namespace

std::string tuningKey(const KernelSet &kernels, unsigned number,
                      const Backend &backend) {
  llvm::BLAKE3 hash;
  hash.update(backend.emitTarget().tf32 ? "tf32 " : "");
  hash.update(kernels.contentAlone(number));
  return llvm::toHex(hash.final<TuningCache::keyDigits / 2>(),
                     /*LowerCase=*/true);
}

std::string tuningNote(const std::string &arch, size_t kernel) {
  return arch + ".tuned." + std::to_string(kernel);
}

std::string describe(const TuningEntry &entry) {
  auto time = [](uint64_t nanoseconds) {
    return llvm::formatv("{0:f2} us", nanoseconds * 1e-3).str();
  };
  std::string text = time(entry.nanoseconds) + " by " + entry.schedule + " (";
  if (entry.rank == 1)
    text += "the cost model's choice, of ";
  else
    text += "the cost model's choice takes " + time(entry.untunedNanoseconds) +
            ", this is its number " + std::to_string(entry.rank) + " of ";
  return text + std::to_string(entry.candidates) + "), on " + entry.device;
}

FailureOr<TuningReport> tuneKernels(const KernelSet &kernels,
                                    ArrayRef<unsigned> launches,
                                    TilePrograms &programs, Backend &backend,
                                    TuningCache &cache,
                                    const TuningOptions &options) {
  return Tuner(kernels, launches, programs, backend, cache, options).run();
}

} // namespace charonia::driver
