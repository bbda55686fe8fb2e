// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s

// Windows of single channels: neighbours by channels, though the result has channels in
// front; rows of the window are loops of their own.
// CHECK-LABEL: func.func @conv(
// CHECK-SAME:    tile.grid = affine_map<() -> (64)>
// CHECK:         scf.for
// CHECK:           tile.load %arg0{{.*}}checks = array<i64>,{{.*}} -> tensor<16x16xf32>
// CHECK:         tile.store {{.*}} : tensor<16x16xf32>
module {
  func.func @main(%x: tensor<1x22x22x64xf32>, %w: tensor<64x7x7x1xf32>) -> tensor<1x64x16x16xf32> {
    %0 = graph.kernel "conv" (%x, %w) : (tensor<1x22x22x64xf32>, tensor<64x7x7x1xf32>) -> tensor<1x64x16x16xf32> {
    ^bb0(%a: tensor<1x22x22x64xf32>, %b: tensor<64x7x7x1xf32>):
      %1 = graph.conv %a, %b {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 64 : i64} : (tensor<1x22x22x64xf32>, tensor<64x7x7x1xf32>) -> tensor<1x16x16x64xf32>
      %2 = graph.transpose %1 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x16x16x64xf32>) -> tensor<1x64x16x16xf32>
      graph.yield %2 : tensor<1x64x16x16xf32>
    }
    return %0 : tensor<1x64x16x16xf32>
  }
}

// -----

// Tiles of columns of one group are matrix products.
// CHECK-LABEL: func.func @conv(
// CHECK:         tile.dot {{.*}} : tensor<{{[0-9]+}}x8xf32>, tensor<8x8xf32> ->
module {
  func.func @main(%x: tensor<1x16x16x64xf32>, %w: tensor<64x3x3x8xf32>) -> tensor<1x14x14x64xf32> {
    %0 = graph.kernel "conv" (%x, %w) : (tensor<1x16x16x64xf32>, tensor<64x3x3x8xf32>) -> tensor<1x14x14x64xf32> {
    ^bb0(%a: tensor<1x16x16x64xf32>, %b: tensor<64x3x3x8xf32>):
      %1 = graph.conv %a, %b {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 8 : i64} : (tensor<1x16x16x64xf32>, tensor<64x3x3x8xf32>) -> tensor<1x14x14x64xf32>
      graph.yield %1 : tensor<1x14x14x64xf32>
    }
    return %0 : tensor<1x14x14x64xf32>
  }
}

// -----

// 8192 terms in blocks of 512, 64 steps of 8, each of which starts from zero.
// CHECK-LABEL: func.func @matmul(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK-DAG:     %[[BLOCKS:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[STEPS:.*]] = arith.constant 64 : index
// CHECK:         scf.for %{{.*}} to %[[BLOCKS]] step {{.*}} iter_args(%[[TOTAL:.*]] = %[[ZERO]])
// CHECK:           %[[BLOCK:.*]] = scf.for %{{.*}} to %[[STEPS]] step {{.*}} iter_args(%{{.*}} = %[[ZERO]])
// CHECK:             tile.dot
// CHECK:           arith.addf %[[TOTAL]], %[[BLOCK]]
module {
  func.func @main(%x: tensor<64x8192xf32>, %w: tensor<8192x64xf32>) -> tensor<64x64xf32> {
    %0 = graph.kernel "matmul" (%x, %w) : (tensor<64x8192xf32>, tensor<8192x64xf32>) -> tensor<64x64xf32> {
    ^bb0(%a: tensor<64x8192xf32>, %b: tensor<8192x64xf32>):
      %1 = graph.matmul %a, %b : (tensor<64x8192xf32>, tensor<8192x64xf32>) -> tensor<64x64xf32>
      graph.yield %1 : tensor<64x64xf32>
    }
    return %0 : tensor<64x64xf32>
  }
}

// -----

// Windows over images that lie channel by channel: tiles along the rows of the image, not
// across its planes.
// CHECK-LABEL: func.func @pool(
// CHECK-NOT:     tensor<{{[0-9]+}}x32xf32>
// CHECK:         tile.store {{.*}} : tensor<56xf32>
module {
  func.func @main(%x: tensor<1x64x112x112xf32>) -> tensor<1x64x56x56xf32> {
    %0 = graph.kernel "pool" (%x) : (tensor<1x64x112x112xf32>) -> tensor<1x64x56x56xf32> {
    ^bb0(%a: tensor<1x64x112x112xf32>):
      %1 = graph.pool max %a {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x64x112x112xf32>) -> tensor<1x64x56x56xf32>
      graph.yield %1 : tensor<1x64x56x56xf32>
    }
    return %0 : tensor<1x64x56x56xf32>
  }
}

// -----

// Windows side by side: rows of the image are combined first, seven elements of each in a register, those
// with each other once behind the loop.
// CHECK-LABEL: func.func @pool(
// CHECK:         scf.for {{.*}} -> (tensor<16x7xf32>)
// CHECK-COUNT-1:   tile.load {{.*}}checks = array<i64>,{{.*}} -> tensor<16x7xf32>
// CHECK-NOT:       tile.load
// CHECK:           scf.yield
// CHECK:         tile.reduce {{.*}} (tensor<16x7xf32>) -> tensor<16xf32>
module {
  func.func @main(%x: tensor<1x64x56x56xf32>) -> tensor<1x64x8x8xf32> {
    %0 = graph.kernel "pool" (%x) : (tensor<1x64x56x56xf32>) -> tensor<1x64x8x8xf32> {
    ^bb0(%a: tensor<1x64x56x56xf32>):
      %1 = graph.pool max %a {kernel = array<i64: 7, 7>, strides = array<i64: 7, 7>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x64x56x56xf32>) -> tensor<1x64x8x8xf32>
      graph.yield %1 : tensor<1x64x8x8xf32>
    }
    return %0 : tensor<1x64x8x8xf32>
  }
}

// -----

// Rows of a padded window that lie outside are left out: what is read needs a check of columns alone.
// CHECK-LABEL: func.func @pool(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             tile.load {{.*}}checks = array<i64: 3>, map = {{.*}}, rank = 4
// CHECK-NOT:         tile.in_bounds {{.*}}shape = affine_map<() -> (16
module {
  func.func @main(%x: tensor<1x32x16x56x56xf32>) -> tensor<1x32x8x28x28xf32> {
    %0 = graph.kernel "pool" (%x) : (tensor<1x32x16x56x56xf32>) -> tensor<1x32x8x28x28xf32> {
    ^bb0(%a: tensor<1x32x16x56x56xf32>):
      %1 = graph.pool max %a {kernel = array<i64: 3, 3, 3>, strides = array<i64: 2, 2, 2>, pads = array<i64: 1, 1, 1, 1, 1, 1>, dilations = array<i64: 1, 1, 1>} : (tensor<1x32x16x56x56xf32>) -> tensor<1x32x8x28x28xf32>
      graph.yield %1 : tensor<1x32x8x28x28xf32>
    }
    return %0 : tensor<1x32x8x28x28xf32>
  }
}

// -----

// So are rows of a convolution's window, whose limits are those of the tile's row.
// CHECK-LABEL: func.func @conv(
// CHECK:         %[[END:.*]] = arith.maxsi
// CHECK:         %[[FIRST:.*]] = arith.minsi %{{.*}}, %[[END]]
// CHECK:         scf.for %{{.*}} = %[[FIRST]] to %[[END]]
// CHECK:           tile.load %arg0{{.*}}checks = array<i64>,
module {
  func.func @main(%x: tensor<1x8x22x64xf32>, %w: tensor<64x7x7x1xf32>) -> tensor<1x8x16x64xf32> {
    %0 = graph.kernel "conv" (%x, %w) : (tensor<1x8x22x64xf32>, tensor<64x7x7x1xf32>) -> tensor<1x8x16x64xf32> {
    ^bb0(%a: tensor<1x8x22x64xf32>, %b: tensor<64x7x7x1xf32>):
      %1 = graph.conv %a, %b {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 3, 0, 3, 0>, dilations = array<i64: 1, 1>, groups = 64 : i64} : (tensor<1x8x22x64xf32>, tensor<64x7x7x1xf32>) -> tensor<1x8x16x64xf32>
      graph.yield %1 : tensor<1x8x16x64xf32>
    }
    return %0 : tensor<1x8x16x64xf32>
  }
}
