// Importing test files.
#ifndef CHARONIA_TESTS_FRONTENDS_PYTORCH_IMPORT_H
#define CHARONIA_TESTS_FRONTENDS_PYTORCH_IMPORT_H

#include "frontends/Importer.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/frontends/pytorch/Files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace charonia::test {

/// Imports and gives the diagnostics as text, and behind them the module;
/// checks that there is one exactly where there is no error.
std::string importPyTorch(const std::string &file,
                          const frontend::ImportOptions &options = {});

} // namespace charonia::test

#endif
