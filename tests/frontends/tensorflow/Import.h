// Importing test files.
#ifndef CHARONIA_TESTS_FRONTENDS_TENSORFLOW_IMPORT_H
#define CHARONIA_TESTS_FRONTENDS_TENSORFLOW_IMPORT_H

#include "tests/frontends/tensorflow/Files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace charonia::test {

/// Imports and gives the diagnostics as text, and behind them the module;
/// checks that there is one exactly where there is no error.
std::string importTensorFlow(const std::map<std::string, std::string> &files,
                             const frontend::ImportOptions &options = {});
std::string importGraph(const tf::proto::Graph &graph);

} // namespace charonia::test

#endif
