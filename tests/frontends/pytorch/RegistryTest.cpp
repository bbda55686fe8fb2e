#include "frontends/pytorch/Registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <fstream>
#include <set>
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
    EXPECT_EQ(target.inPlace, target.row->alias == Alias::No ||
                                  target.row->alias == Alias::Real)
        << inPlace;
  }
  EXPECT_GT(known, 100);
}

/// Each line of schemas.txt (scripts/pytorch_schemas.py): a row, and the
/// argument that its results are views of by PyTorch's schema.
TEST(PyTorchRegistry, ViewsAreThoseOfTheSchemas) {
  const char *root = std::getenv("CHARONIA_SOURCE_DIR");
  if (!root)
    GTEST_SKIP() << "CHARONIA_SOURCE_DIR is not set, as ctest does";
  // Made of views, or their operand itself, which their schemas do not say.
  const std::set<std::string> composites = {"_unsafe_view",
                                            "alpha_dropout",
                                            "atleast_1d",
                                            "atleast_2d",
                                            "atleast_3d",
                                            "broadcast_tensors",
                                            "cartesian_prod",
                                            "conj_physical",
                                            "dropout",
                                            "einsum",
                                            "feature_dropout",
                                            "meshgrid",
                                            "sum_to_size",
                                            "type_as",
                                            "unsafe_chunk",
                                            "unsafe_split",
                                            "unsafe_split_with_sizes"};
  std::ifstream list(std::string(root) +
                     "/tests/frontends/pytorch/schemas.txt");
  std::set<std::string> told;
  std::string op, viewed;
  while (list >> op >> viewed) {
    told.insert(op);
    Target target = findTarget("torch.ops." + op);
    ASSERT_TRUE(target.row) << op << ": run scripts/pytorch_schemas.py";
    std::string name = StringRef(op).split('.').second.split('.').first.str();
    if (viewed == "-")
      EXPECT_EQ(target.row->alias != Alias::No, composites.count(name) != 0)
          << op;
    else
      EXPECT_TRUE(target.row->alias == Alias::View ||
                  target.row->alias == Alias::Maybe)
          << op << " is a view of " << viewed;
  }
  for (const Row &row : allRows())
    EXPECT_TRUE(told.count(row.op) || !StringRef(row.op).starts_with("aten."))
        << row.op << " is not in schemas.txt: run scripts/pytorch_schemas.py";
}

TEST(PyTorchRegistry, WhatIsWrittenElsewhereHasTheRowsOfItsArguments) {
  for (auto [op, computed] : {std::pair("maximum.out", "maximum.default"),
                              std::pair("all.out", "all.dim"),
                              std::pair("all.all_out", "all.default"),
                              std::pair("div.out_mode", "div.Tensor_mode"),
                              std::pair("eq.Scalar_out", "eq.Scalar"),
                              std::pair("sort.values_stable", "sort.stable"),
                              std::pair("sum.IntList_out", "sum.dim_IntList"),
                              std::pair("max.dim_max", "max.dim")}) {
    Target target = findTarget(std::string("torch.ops.aten.") + op);
    ASSERT_TRUE(target.row) << op;
    EXPECT_EQ(target.row->op, std::string("aten.") + computed);
    EXPECT_TRUE(target.isOut && !target.inPlace) << op;
  }
  EXPECT_FALSE(findTarget("torch.ops.aten.add.Tensor").isOut);
}

TEST(PyTorchRegistry, NamesThatAreNone) {
  for (const char *name :
       {"torch.ops.aten.__inone__.Tensor", "torch.ops.aten._.default",
        "torch.ops.aten.__i__.Tensor", "torch.ops.aten.add__.Tensor",
        "aten.add_.Tensor", "torch.ops.aten._.", "torch.ops.", "torch.ops.__"})
    EXPECT_FALSE(findTarget(name).row) << name;
}
