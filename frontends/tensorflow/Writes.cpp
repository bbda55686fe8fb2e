// Reporting what bodies do to variables.
#include "frontends/tensorflow/GraphImporter.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;

void GraphImporter::noteWrites(const Scope &scope, llvm::ArrayRef<int> nodes) {
  if (!effects.need(scope.body, scope.isFunction, nodes) ||
      writers.count(&scope.body))
    return;
  Writer &writer = writers[&scope.body];
  writer.path = scope.path;
  for (const auto &argument : scope.arguments)
    if (argument.getValue().variable)
      writer.variables[argument.getKey().str()] =
          argument.getValue().variable->node;
}

/// Whether a node of the graph is on the side of a choice that is not taken.
bool GraphImporter::isUntaken(int node, const Scope &scope) {
  auto path = flowOf(scope.body).pathOf(node);
  return path && llvm::any_of(*path, [&](const auto &side) {
           auto decider = lookup(parseReference(side.first), scope);
           if (!decider || !decider->value || decider->tainted)
             return false;
           bool isTruth = elementOf(decider->value).isInteger(1);
           auto known =
               isTruth ? knownIndex(decider->value, true) : std::nullopt;
           return known && *known != side.second;
         });
}

void GraphImporter::checkWrites(const Scope &graph) {
  std::set<std::string> left;
  for (const auto &[body, writer] : writers) {
    auto isUntakenNode = [&](int node) {
      return body == &graph.body && isUntaken(node, graph);
    };
    auto variable = effects.findStale(*body, isUntakenNode);
    if (!variable) {
      for (const std::string &name : effects.findWritten(*body, isUntakenNode))
        if (auto it = writer.variables.find(name);
            it != writer.variables.end() || body == &graph.body)
          left.insert(it == writer.variables.end() ? name : it->second);
      continue;
    }
    auto it = writer.variables.find(*variable);
    report(
        {(writer.path.empty() ? "" : "'" + printable(writer.path) + "' ") +
             std::string("writes variable '") +
             printable(it == writer.variables.end() ? *variable : it->second) +
             "' before it is read, which is not supported",
         "export a function that leaves its variables as they are"});
  }
  noteWritten(left);
}

/// Notes that writes are left out.
void GraphImporter::noteWritten(const std::set<std::string> &names) {
  constexpr int shown = 4;
  if (names.empty())
    return;
  std::string list;
  int count = 0;
  for (const std::string &name : names)
    if (++count <= shown)
      list += (count > 1 ? ", '" : "'") + printable(name) + "'";
  if (count > shown)
    list += " and " + std::to_string(count - shown) + " others";
  Diagnostic note;
  note.severity = Diagnostic::Severity::Note;
  note.file = file;
  note.what = "writes to variables are left out, so that every run begins with "
              "what is stored: " +
              list;
  note.remedy = "where runs have to go on from each other, export a function "
                "that has its states as inputs and results";
  diagnostics.push_back(std::move(note));
}
