// The weights of a compile's programs, and what it notes of them in the engine.
#include "codegen/driver/Compilation.h"
#include "codegen/driver/Resume.h"
#include "graph/analysis/Computing.h"
#include "graph/analysis/Weights.h"
#include "runtime/plan/ProgramArena.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace charonia::driver {

FailureOr<Preparation *> Compilation::prepare(ModuleOp staged) {
  std::unique_ptr<Backend> host = createHostBackend();
  KernelOptions prepareOptions;
  prepareOptions.cache = &cache;
  prepareOptions.activity = options.activity;
  progress("preparation of weights");
  prepareOptions.progress = [&](unsigned done, unsigned total) {
    progress("preparation of weights", done, total);
  };
  FailureOr<std::unique_ptr<Preparation>> preparation =
      Preparation::create(findPrepare(staged), *host, prepareOptions);
  if (failed(preparation))
    return failure();
  preparations.push_back(std::move(*preparation));
  return preparations.back().get();
}

void Compilation::addWeights(ProgramLayout &layout, Preparation &preparation,
                             std::vector<WeightSection> &sections,
                             ProgramReport &entry) {
  entry.weightBytes = layout.weightBytes;
  if (layout.weights.empty())
    return;
  auto shared = llvm::find_if(sections, [&](const WeightSection &section) {
    return section.weights == layout.weights;
  });
  if (shared == sections.end()) {
    sections.push_back({layout.weights, 0});
    shared = std::prev(sections.end());
    shared->section =
        writeWeights(layout, preparation, deviceKindName(entry.device));
  }
  layout.program.weightsSection = shared->section;
}

uint32_t Compilation::writeWeights(const ProgramLayout &layout,
                                   Preparation &preparation, StringRef device) {
  auto weights = std::make_shared<std::vector<PlacedWeight>>(layout.weights);
  return writer.addSection(
      engine::SectionKind::Weights, (device + ".weights").str(),
      layout.weightBytes,
      [this, weights, &preparation](engine::SectionSink &sink) -> Status {
        graph::WeightStore &store =
            module.getContext()
                ->getLoadedDialect<graph::GraphDialect>()
                ->getWeights();
        static const char zeros[4096] = {};
        uint64_t position = 0;
        for (const auto &[i, weight] : llvm::enumerate(*weights)) {
          progress("weights", i, weights->size());
          CHARONIA_RETURN_IF_ERROR(sink.write(zeros, weight.offset - position));
          position = weight.offset + weight.size;
          if (preparation.contains(weight.name)) {
            CHARONIA_RETURN_IF_ERROR(preparation.compute(
                weight.name, [&](std::span<const std::byte> bytes) {
                  return sink.write(bytes);
                }));
            continue;
          }
          const graph::Weight *stored = store.lookup(weight.name);
          if (!stored)
            return Status(StatusCode::Internal,
                          "there is no weight '" + weight.name + "'");
          CHARONIA_RETURN_IF_ERROR(
              sink.write(stored->bytes.data(), stored->bytes.size()));
        }
        return Status::ok();
      });
}

void Compilation::noteFusion(ModuleOp program, const std::string &name,
                             const Backend &backend) {
  SmallVector<StringAttr> lines;
  for (func::FuncOp function : graph::getComputing(program))
    if (auto list = function->getAttrOfType<ArrayAttr>("graph.fusion"))
      llvm::append_range(lines, list.getAsRange<StringAttr>());
  constexpr double step = 1;
  for (auto [i, line] : llvm::enumerate(lines)) {
    SmallVector<StringRef> fields;
    line.getValue().split(fields, '\t');
    int64_t count = 0, bytes = 0;
    std::string saved;
    if (fields.size() == 5 && !fields[2].getAsInteger(10, count) &&
        !fields[3].getAsInteger(10, bytes) &&
        backend.device() == DeviceKind::Cuda)
      saved = llvm::formatv("{0:F1}",
                            count * step +
                                bytes / backend.emitTarget().chip->memoryRate)
                  .str();
    manifest.build.notes.emplace_back(name + ".fusion." + std::to_string(i),
                                      (line.getValue() + "\t" + saved).str());
  }
}

LogicalResult Compilation::addArena(const engine::Program &program,
                                    const std::string &name,
                                    ProgramReport &entry) {
  auto arena = plan::planProgram(program, {optimum.data(), optimum.size()});
  if (!arena)
    return error() << arena.status().message(), failure();
  entry.arenaPeak = arena->packed.peak;
  entry.arenaLowerBound = arena->packed.lowerBound;
  auto &notes = manifest.build.notes;
  notes.emplace_back(name + ".arena.peak", std::to_string(arena->packed.peak));
  notes.emplace_back(name + ".arena.lowerBound",
                     std::to_string(arena->packed.lowerBound));
  return success();
}

} // namespace charonia::driver
