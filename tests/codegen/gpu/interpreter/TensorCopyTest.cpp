// The copy engine: what lands where, at edges, with pieces that trade places
// and as im2col.
#include "TensorCopies.h"

using namespace charonia::interpreter;

namespace {

/// The word of a box that lies in a word of shared memory.
int unswizzled(int word, unsigned swizzle) {
  return swizzle ? word ^ ((word >> 5 & 7) << 2) : word;
}

TEST(TensorCopies, TiledBoxes) {
  for (unsigned swizzle : {0, 128})
    for (int step : {1, 2})
      for (auto [x, y] : {std::pair(0, 0),
                          {8, 2},
                          {-4, -3},
                          {20, 6},
                          {40, 0},
                          {-32, -8},
                          {0, 12}}) {
        TensorMap map = matrixMap();
        map.swizzle = swizzle;
        map.steps[1] = step;
        int rows = 8 / step; // The box spans what is stepped over, too.
        std::string body = kReady +
                           byFirst(expect(rows * 128) + copyBox({x, y})) +
                           waitFor("full") + writeShared(rows * 32);
        for (const Launch &launch : manyLaunches()) {
          SimtRun run = runMap(map, body, 400, rows * 32, launch);
          EXPECT_EQ(run.text(), "");
          for (int word = 0; word < rows * 32; ++word) {
            int at = unswizzled(word, swizzle);
            int column = x + at % 32, row = y + at / 32 * step;
            bool inside = column >= 0 && column < 40 && row >= 0 && row < 10;
            ASSERT_EQ(run.out[word], inside ? row * 40 + column + 1 : 0)
                << x << ", " << y << ": word " << word;
          }
        }
      }
}

/// A filter of 3x3 with padding 1: output pixels from `pixel` on, of images of
/// 5 by 4 pixels of 32 channels.
void checkIm2col(int stride, int pixel, int r, int s, int channel) {
  constexpr int channels = 32, width = 5, height = 4, images = 2, pixels = 16;
  TensorMap map;
  map.elementBytes = 4;
  map.swizzle = 128;
  map.extents = {channels, width, height, images};
  map.strides = {4 * channels, 4 * channels * width,
                 4 * channels * width * height};
  map.box = {32, pixels};
  map.steps = {1, stride, stride, 1};
  map.lower = {-1, -1};
  map.upper = {-1, -1};
  int q = (width - 1) / stride + 1, p = (height - 1) / stride + 1;
  int image = pixel / (p * q), row = pixel / q % p, column = pixel % q;
  std::string body =
      kReady +
      byFirst(expect(pixels * 128) +
              copyBox({channel, column * stride - 1, row * stride - 1, image},
                      {s, r})) +
      waitFor("full") + writeShared(pixels * 32);
  for (const Launch &launch : manyLaunches()) {
    SimtRun run = runMap(map, body, channels * width * height * images,
                         pixels * 32, launch);
    EXPECT_EQ(run.text(), "");
    for (int word = 0; word < pixels * 32; ++word) {
      int at = unswizzled(word, 128), number = pixel + at / 32;
      int n = number / (p * q), y = number / q % p * stride - 1 + r,
          x = number % q * stride - 1 + s, c = channel + at % 32;
      bool inside = n < images && y >= 0 && y < height && x >= 0 && x < width &&
                    c < channels;
      int expected = ((n * height + y) * width + x) * channels + c + 1;
      ASSERT_EQ(run.out[word], inside ? expected : 0)
          << "stride " << stride << ", pixel " << pixel << ", tap " << r << ", "
          << s << ": word " << word;
    }
  }
}

TEST(TensorCopies, Im2col) {
  for (int r = 0; r < 3; ++r)
    for (int s = 0; s < 3; ++s) {
      checkIm2col(1, 0, r, s, 0);
      checkIm2col(1, 33, r, s, 0);
      checkIm2col(2, 0, r, s, 0);
      checkIm2col(2, 4, r, s, 0);
      checkIm2col(2, 5, r, s, 16); // The last channels are not there.
    }
}

} // namespace
