// RUN: charonia-opt %s -emit-tiles=target=sm_90a -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s

// What lies across the result in memory is read and written in runs.
// CHECK-LABEL: func.func @transpose(
// CHECK:         tile.load %arg0
// CHECK-SAME:      -> tensor<64x64xf16>
module {
  func.func @main(%x: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
    %0 = graph.kernel "transpose" (%x) : (tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
    ^bb0(%a: tensor<4096x4096xf16>):
      %1 = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
      graph.yield %1 : tensor<4096x4096xf16>
    }
    return %0 : tensor<4096x4096xf16>
  }
}

// -----

// So are windows over channels-last images whose result has channels in front.
// CHECK-LABEL: func.func @pool(
// CHECK:         tile.load %arg0
// CHECK-SAME:      -> tensor<32x32xf32>
module {
  func.func @main(%x: tensor<8x112x112x64xf32>) -> tensor<8x64x56x56xf32> {
    %0 = graph.kernel "pool" (%x) : (tensor<8x112x112x64xf32>) -> tensor<8x64x56x56xf32> {
    ^bb0(%a: tensor<8x112x112x64xf32>):
      %1 = graph.pool max %a {channels_last, dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<8x112x112x64xf32>) -> tensor<8x56x56x64xf32>
      %2 = graph.transpose %1 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<8x56x56x64xf32>) -> tensor<8x64x56x56xf32>
      graph.yield %2 : tensor<8x64x56x56xf32>
    }
    return %0 : tensor<8x64x56x56xf32>
  }
}

// -----

// Few long rows across memory: 32 columns an instance, 32 elements of each at once.
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME:    tile.grid = affine_map<() -> (32)>
// CHECK:         tile.store {{.*}} tensor<32x32xf32>
module {
  func.func @main(%x: tensor<2048x1000xf32>) -> tensor<2048x1000xf32> {
    %0 = graph.kernel "softmax" (%x) : (tensor<2048x1000xf32>) -> tensor<2048x1000xf32> {
    ^bb0(%a: tensor<2048x1000xf32>):
      %1 = graph.softmax %a {axis = 0 : i64} : (tensor<2048x1000xf32>) -> tensor<2048x1000xf32>
      graph.yield %1 : tensor<2048x1000xf32>
    }
    return %0 : tensor<2048x1000xf32>
  }
}
