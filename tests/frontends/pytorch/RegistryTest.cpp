#include "frontends/pytorch/Registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace charonia::frontend::pytorch;
using llvm::StringRef;

/// Each line of in_place.txt (pt2_rows_cases.py): an overload that PyTorch has
/// in place, and what is not in place by its name.
TEST(PyTorchRegistry, WhatIsInPlaceHasTheRowsOfWhatIsNot) {
  const char *root = std::getenv("CHARONIA_SOURCE_DIR");
  if (!root)
    GTEST_SKIP() << "CHARONIA_SOURCE_DIR is not set, as ctest does";
  std::ifstream list(std::string(root) +
                     "/tests/frontends/pytorch/in_place.txt");
  std::string line;
  int known = 0;
  while (std::getline(list, line)) {
    std::istringstream words(line);
    std::string inPlace, other;
    words >> inPlace >> other;
    bool hasRow = llvm::any_of(allRows(), [&](const Row &row) {
      return StringRef(row.op).rsplit('.').first == other;
    });
    if (!hasRow)
      continue;
    ++known;
    Target target = findTarget("torch.ops." + inPlace);
    ASSERT_TRUE(target.row) << inPlace;
    EXPECT_EQ(StringRef(target.row->op).rsplit('.').first.str(), other);
    EXPECT_EQ(target.inPlace, target.row->alias == Alias::No) << inPlace;
  }
  EXPECT_GT(known, 100);
}

TEST(PyTorchRegistry, NamesThatAreNone) {
  for (const char *name :
       {"torch.ops.aten.__inone__.Tensor", "torch.ops.aten._.default",
        "torch.ops.aten.__i__.Tensor", "torch.ops.aten.add__.Tensor",
        "aten.add_.Tensor", "torch.ops.aten._.", "torch.ops.", "torch.ops.__"})
    EXPECT_FALSE(findTarget(name).row) << name;
}
