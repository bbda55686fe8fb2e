// Which schedule is taken of those that are measured: with a timer that says
// what each takes.
#include "codegen/driver/Tuner.h"
#include "charonia/runtime.h"
#include "codegen/driver/Compiler.h"
#include "codegen/emit/Schedule.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>

using namespace charonia;
using namespace charonia::driver;
using namespace mlir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

namespace {

class FakeTimer : public KernelTimer {
public:
  struct Script {
    double seconds = 1e-3; ///< Of a launch.
    std::vector<double> results = {1, 2, 3};
    std::string loading, running; ///< What goes wrong there.
  };
  /// By schedule; `usual` for the others.
  std::map<std::string, Script> scripts;
  Script usual;
  std::string problem; ///< Why there is no device.
  std::vector<std::string> loaded;
  std::map<std::string, unsigned> runs;

  Result<std::string> deviceFor(DeviceKind, const std::string &arch) override {
    if (!problem.empty())
      return Status(StatusCode::Unavailable, problem);
    return "Fake of " + arch;
  }

  std::vector<Result<std::unique_ptr<Trial>>>
  load(const std::vector<TrialEngine> &engines, DeviceKind,
       const std::string &) override {
    std::vector<Result<std::unique_ptr<Trial>>> trials;
    for (const TrialEngine &engine : engines) {
      // The file is one that the runtime takes.
      Result<Engine> file = Engine::load(engine.bytes);
      EXPECT_TRUE(file) << file.status().message();
      loaded.push_back(engine.schedule);
      const Script &script = scriptOf(engine.schedule);
      if (!script.loading.empty())
        trials.push_back(Status(StatusCode::DeviceError, script.loading));
      else
        trials.push_back(std::unique_ptr<Trial>(std::make_unique<FakeTrial>(
            *this, engine.schedule,
            file ? file->programs().front().kernels : 1)));
    }
    return trials;
  }

private:
  const Script &scriptOf(const std::string &schedule) const {
    auto it = scripts.find(schedule);
    return it == scripts.end() ? usual : it->second;
  }

  class FakeTrial : public Trial {
  public:
    FakeTrial(FakeTimer &timer, std::string schedule, size_t launches)
        : timer(timer), schedule(std::move(schedule)), launches(launches) {}
    Result<double> run() override {
      ++timer.runs[schedule];
      const Script &script = timer.scriptOf(schedule);
      if (!script.running.empty())
        return Status(StatusCode::DeviceError, script.running);
      return script.seconds * launches;
    }
    Result<std::vector<double>> results() override {
      return timer.scriptOf(schedule).results;
    }

  private:
    FakeTimer &timer;
    std::string schedule;
    size_t launches;
  };
};

class Tuning : public testing::Test {
protected:
  Tuning() {
    DialectRegistry registry;
    registerCompiler(registry);
    context.appendDialectRegistry(registry);
    loadDialects(context);
    handler.emplace(&context, [&](Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      for (Diagnostic &note : diagnostic.getNotes())
        said += note.str() + "\n";
      return success();
    });
    useTarget("x86-64-v4", "fp32");
    addProduct("product", 70, 96, 64, "f32");
  }

  void useTarget(StringRef target, StringRef precision) {
    backend = std::move(createBackends(target, precision).front());
  }

  /// A kernel of x * W, of which W is a weight.
  void addProduct(StringRef name, int rows, int columns, int terms,
                  std::string type) {
    auto tensor = [&](int a, int b) {
      return "tensor<" + std::to_string(a) + "x" + std::to_string(b) + "x" +
             type + ">";
    };
    std::string x = tensor(rows, terms), w = tensor(terms, columns),
                y = tensor(rows, columns),
                types = " : (" + x + ", " + w + ") -> " + y;
    std::string text = "func.func @f(%x: " + x + ", %w: " + w +
                       ") {\n%0 = graph.kernel \"" + name.str() +
                       "\" (%x, %w)" + types + " {\n^bb0(%a: " + x +
                       ", %b: " + w + "):\n%r = graph.matmul %a, %b" + types +
                       "\ngraph.yield %r : " + y + "\n}\nreturn\n}";
    auto module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    module->walk([&](graph::KernelOp op) {
      kernels.add(op, [&](Value v) { return v == op.getInputs()[1]; });
    });
    launches.push_back(1);
  }

  /// The words of candidate `rank` of a kernel.
  std::string candidate(unsigned rank, unsigned kernel = 0) {
    auto all = emit::candidateSchedules(kernels.get(kernel),
                                        backend->emitTarget(), maxCandidates);
    return rank <= all.size() ? all[rank - 1].text() : "no such candidate";
  }

  FailureOr<TuningReport> tune() {
    TuningOptions options;
    options.timer = measures ? &timer : nullptr;
    options.seconds = seconds;
    options.keep = [&] {
      ++kept;
      return keeping;
    };
    return tuneKernels(kernels, launches, programs, *backend, cache, options);
  }

  /// What the kernel was given, in words; empty: nothing.
  std::string given(unsigned kernel = 0) {
    DictionaryAttr attribute = kernels.get(kernel).getScheduleAttr();
    if (!attribute)
      return "";
    auto schedule =
        emit::Schedule::fromAttribute(attribute, kernels.get(kernel).getLoc());
    return succeeded(schedule) ? schedule->text() : "no schedule";
  }

  MLIRContext context;
  std::optional<ScopedDiagnosticHandler> handler;
  std::string said;
  std::unique_ptr<Backend> backend;
  KernelSet kernels;
  std::vector<unsigned> launches;
  TilePrograms programs;
  TuningCache cache;
  FakeTimer timer;
  bool measures = true;
  std::optional<double> seconds;
  unsigned kept = 0;
  Status keeping;
};

TEST_F(Tuning, TheFastestIsTaken) {
  timer.scripts[candidate(3)].seconds = 0.4e-3;
  timer.scripts[candidate(2)].seconds = 0.9e-3;
  auto report = tune();
  ASSERT_TRUE(succeeded(report)) << said;
  EXPECT_EQ(given(), candidate(3));
  ASSERT_THAT(report->entries, SizeIs(1));
  const TuningEntry &entry = *report->entries[0];
  EXPECT_EQ(entry.schedule, candidate(3));
  EXPECT_EQ(entry.device, "Fake of x86-64-v4");
  EXPECT_EQ(entry.nanoseconds, 400'000u);
  EXPECT_EQ(entry.untunedNanoseconds, 1'000'000u);
  EXPECT_EQ(entry.rank, 3u);
  EXPECT_EQ(*cache.find("x86-64-v4", tuningKey(kernels, 0, *backend)), entry);
  EXPECT_EQ(kept, 1u);
  EXPECT_EQ(report->kernels, 1u);
  EXPECT_EQ(report->known + report->left, 0u);
  ASSERT_THAT(report->measured, SizeIs(1));
  EXPECT_EQ(report->measured[0].candidates.front().schedule, candidate(1));
  EXPECT_THAT(describe(entry), StartsWith("400.00 us by " + candidate(3) +
                                          " (the cost model's choice takes "
                                          "1000.00 us, this is its number 3"));
  // What is clearly slower is not run to the end.
  EXPECT_LT(timer.runs[candidate(2)], timer.runs[candidate(3)]);
  EXPECT_EQ(timer.runs[candidate(1)], timer.runs[candidate(3)]);
}

TEST_F(Tuning, ASmallLeadIsNone) {
  timer.scripts[candidate(2)].seconds = 0.995e-3;
  ASSERT_TRUE(succeeded(tune())) << said;
  EXPECT_EQ(given(), candidate(1));
}

TEST_F(Tuning, WhatComputesSomethingElseIsLeftOut) {
  timer.scripts[candidate(2)] = {0.1e-3, {1, 2, 4}, "", ""};
  timer.scripts[candidate(3)] = {0.2e-3, {1, 2, NAN}, "", ""};
  timer.scripts[candidate(4)] = {0.3e-3, {1, 2, 3.01}, "", ""};
  ASSERT_TRUE(succeeded(tune())) << said;
  EXPECT_EQ(given(), candidate(4));
  EXPECT_EQ(timer.runs[candidate(2)], 1u);
  EXPECT_THAT(said, HasSubstr("kernel 'product' computes something else on "
                              "Fake of x86-64-v4 with the schedule '" +
                              candidate(2) + "', which is left out"));
  EXPECT_THAT(said, HasSubstr(candidate(3)));
}

TEST_F(Tuning, WhatCannotBeLoadedIsLeftOut) {
  timer.scripts[candidate(2)] = {0.1e-3, {1, 2, 3}, "too much memory", ""};
  ASSERT_TRUE(succeeded(tune())) << said;
  EXPECT_EQ(given(), candidate(1));
}

TEST_F(Tuning, WithoutTheFirstThereIsNoMeasuring) {
  timer.scripts[candidate(1)].loading = "out of memory";
  EXPECT_TRUE(failed(tune()));
  EXPECT_EQ(said, "kernel 'product' cannot be measured on Fake of x86-64-v4: "
                  "out of memory\n");
  EXPECT_EQ(given(), "");
  said.clear();
  timer.scripts[candidate(1)] = {1e-3, {}, "", "the GPU is lost"};
  EXPECT_TRUE(failed(tune()));
  EXPECT_THAT(said, HasSubstr("the GPU is lost"));
}

TEST_F(Tuning, WithoutADeviceOnlyAFullCacheServes) {
  timer.problem = "there is no such GPU on this machine";
  EXPECT_TRUE(failed(tune()));
  EXPECT_EQ(said,
            "kernels for x86-64-v4 cannot be tuned here: there is no such GPU "
            "on this machine; 1 of 1 have no entry in a tuning cache\n"
            "remedy: tune on a machine that has the device and bring its "
            "--tuning-cache FILE here, or compile without --tune\n");
  cache.set("x86-64-v4", tuningKey(kernels, 0, *backend),
            {candidate(2), "NVIDIA H200", 8, 9, 2, 6});
  auto report = tune();
  ASSERT_TRUE(succeeded(report));
  EXPECT_EQ(given(), candidate(2));
  EXPECT_EQ(report->known, 1u);
  EXPECT_THAT(timer.loaded, IsEmpty());
  EXPECT_EQ(kept, 0u);
}

TEST_F(Tuning, WithoutATimerTheCacheServes) {
  measures = false;
  auto report = tune();
  ASSERT_TRUE(succeeded(report)) << said;
  EXPECT_EQ(report->left, 1u);
  EXPECT_EQ(given(), "");
  cache.set("x86-64-v4", tuningKey(kernels, 0, *backend),
            {candidate(2), "NVIDIA H200", 8, 9, 2, 6});
  report = tune();
  ASSERT_TRUE(succeeded(report));
  EXPECT_EQ(report->left, 0u);
  EXPECT_EQ(given(), candidate(2));
}

TEST_F(Tuning, OnlyOwnSchedulesAreTakenFromACache) {
  for (std::string text : {"tiles 0:1000000 1:3, axes 0 1", "x", "tiles"}) {
    cache.set("x86-64-v4", tuningKey(kernels, 0, *backend),
              {text, "NVIDIA H200", 1, 9, 2, 6});
    measures = false;
    auto report = tune();
    ASSERT_TRUE(succeeded(report));
    EXPECT_EQ(report->left, 1u) << text;
    EXPECT_EQ(given(), "");
  }
  // It is measured anew.
  measures = true;
  ASSERT_TRUE(succeeded(tune()));
  EXPECT_EQ(cache.find("x86-64-v4", tuningKey(kernels, 0, *backend))->schedule,
            candidate(1));
}

TEST_F(Tuning, TimeIsLimited) {
  seconds = 0;
  auto report = tune();
  ASSERT_TRUE(succeeded(report)) << said;
  EXPECT_EQ(report->left, 1u);
  EXPECT_EQ(report->entries[0], std::nullopt);
  EXPECT_EQ(given(), "");
}

TEST_F(Tuning, WhatMattersMostComesFirst) {
  addProduct("large", 700, 960, 640, "f32");
  addProduct("frequent", 71, 96, 64, "f32");
  launches = {1, 1, 7};
  auto report = tune();
  ASSERT_TRUE(succeeded(report)) << said;
  std::vector<std::string> names;
  for (const MeasuredKernel &kernel : report->measured)
    names.push_back(kernel.name);
  EXPECT_THAT(names, ElementsAre("large", "frequent", "product"));
  EXPECT_EQ(kept, 3u);
}

TEST_F(Tuning, WhatIsMeasuredHasToBeKept) {
  keeping = Status(StatusCode::Io, "t.tune: disk full");
  EXPECT_TRUE(failed(tune()));
  EXPECT_EQ(said, "what was measured cannot be kept: t.tune: disk full\n");
}

TEST_F(Tuning, PartsOfAGpuHaveScratchMemory) {
  useTarget("sm_90a", "fp16");
  kernels = KernelSet();
  launches.clear();
  addProduct("deep", 64, 512, 4608, "f16");
  std::string parts;
  for (unsigned rank = maxCandidates; rank > 0; --rank)
    if (StringRef(candidate(rank)).contains("parts"))
      parts = candidate(rank);
  ASSERT_NE(parts, "");
  timer.scripts[parts].seconds = 1e-6;
  ASSERT_TRUE(succeeded(tune())) << said;
  EXPECT_EQ(given(), parts);
  EXPECT_GE(timer.loaded.size(), 8u);
}

TEST_F(Tuning, TargetsAndPrecisionsHaveEntriesOfTheirOwn) {
  std::string key = tuningKey(kernels, 0, *backend);
  useTarget("sm_80", "fp32");
  EXPECT_EQ(tuningKey(kernels, 0, *backend), key);
  useTarget("sm_80", "tf32");
  EXPECT_NE(tuningKey(kernels, 0, *backend), key);
}

} // namespace
