// The files of compiled kernels: round trips, and damage that is only a miss.
#include "codegen/driver/KernelCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <fstream>
#include <gtest/gtest.h>

using namespace charonia;
using namespace charonia::driver;

namespace {

class KernelCacheTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kernel-cache", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string pathOf(llvm::StringRef key) const {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, key.take_front(2), key.drop_front(2));
    return std::string(path);
  }

  llvm::SmallString<128> folder;
};

KernelBinary sample() {
  KernelBinary binary;
  binary.ptx = ".version 8.0";
  binary.cubin = {1, 0, 2};
  binary.entry = "gemm";
  binary.sharedBytes = 65536;
  binary.clusterSize = 2;
  binary.waitsForPrevious = binary.waitsAtEnd = true;
  engine::TensorMap tiled, im2col;
  ShapeExpr rows = ShapeExpr::symbol(0);
  tiled.argument = 3, tiled.elementBytes = 4;
  tiled.extents = {0, rows * 2 + 1, rows}, tiled.strides = {64, rows * -16};
  tiled.box = {16, 256, 1}, tiled.steps = {1, 8, 1};
  im2col.swizzle = 128;
  im2col.extents = {64, rows, 3}, im2col.strides = {128, 1024};
  im2col.box = {64, 1024}, im2col.steps = {1, 2, 1};
  im2col.lower = {-32768}, im2col.upper = {32767};
  binary.maps = {tiled, im2col, tiled};
  return binary;
}

TEST_F(KernelCacheTest, RoundTrip) {
  KernelCache cache(std::string(folder.str()));
  std::string key = cache.key("a program", "sm_90");
  EXPECT_FALSE(cache.lookup(key));
  KernelBinary binary = sample();
  cache.insert(key, binary);
  EXPECT_EQ(cache.problem(), "");
  auto found = cache.lookup(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ptx, binary.ptx);
  EXPECT_EQ(found->cubin, binary.cubin);
  EXPECT_EQ(found->entry, binary.entry);
  EXPECT_EQ(found->sharedBytes, binary.sharedBytes);
  EXPECT_EQ(found->clusterSize, binary.clusterSize);
  EXPECT_TRUE(found->waitsForPrevious && found->waitsAtEnd);
  EXPECT_EQ(found->maps, binary.maps);
  binary.maps.clear();
  cache.insert(key, binary);
  EXPECT_TRUE(cache.lookup(key)->maps.empty());
}

TEST_F(KernelCacheTest, DamageIsAMiss) {
  KernelCache cache(std::string(folder.str()));
  std::string key = cache.key("a program", "sm_90");
  cache.insert(key, sample());
  auto file = llvm::MemoryBuffer::getFile(pathOf(key));
  ASSERT_TRUE(bool(file));
  std::string bytes = (*file)->getBuffer().str();
  auto rewrite = [&](llvm::StringRef content) {
    std::ofstream(pathOf(key), std::ios::binary) << content.str();
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 0x11;
    rewrite(changed);
    EXPECT_FALSE(cache.lookup(key)) << i;
    rewrite(llvm::StringRef(bytes).take_front(i));
    EXPECT_FALSE(cache.lookup(key)) << i;
  }
  rewrite(bytes);
  EXPECT_TRUE(cache.lookup(key));
}

} // namespace
