// RUN: charonia-opt %s -emit-tiles -split-input-file -mlir-print-local-scope | FileCheck %s
// A copy that no cache holds is written past them: 12 MB of 24. What is smaller is not, nor what is computed by a product.
// CHECK-LABEL: func.func @copy
// CHECK-SAME: %arg0: !tile.buffer<f32>, %arg1: !tile.buffer<f32> {tile.streamed})
module {
  func.func @main(%x: tensor<1024x3072xf32>) -> tensor<1024x3072xf32> {
    %0 = graph.kernel "copy" (%x) : (tensor<1024x3072xf32>) -> tensor<1024x3072xf32> {
    ^bb0(%a: tensor<1024x3072xf32>):
      %1 = graph.abs %a : (tensor<1024x3072xf32>) -> tensor<1024x3072xf32>
      graph.yield %1 : tensor<1024x3072xf32>
    }
    return %0 : tensor<1024x3072xf32>
  }
}

// -----

// CHECK-LABEL: func.func @small
// CHECK-NOT: tile.streamed
module {
  func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = graph.kernel "small" (%x) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    ^bb0(%a: tensor<1024x1024xf32>):
      %1 = graph.abs %a : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
      graph.yield %1 : tensor<1024x1024xf32>
    }
    return %0 : tensor<1024x1024xf32>
  }
}

// -----

// Of open sizes it is asked in the kernel, whatever is optimized for.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: !tile.buffer<f32> {tile.streamed = affine_map<()[s0] -> (s0 * 8192 - 25165824, s0 * 16384 - 25165824)>}
module attributes {graph.symbols = [{name = "rows", min = 1, opt = 16, max = 8192, divisor = 1}]} {
  func.func @main(%x: tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>> {
    %0 = graph.kernel "rows" (%x) : (tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>> {
    ^bb0(%a: tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>):
      %1 = graph.abs %a : (tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>
      graph.yield %1 : tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>
    }
    return %0 : tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>
  }
}

// -----

// CHECK-LABEL: func.func @product
// CHECK-NOT: tile.streamed
module {
  func.func @main(%x: tensor<4096x64xf32>, %w: tensor<64x2048xf32>) -> tensor<4096x2048xf32> {
    %0 = graph.kernel "product" (%x, %w) : (tensor<4096x64xf32>, tensor<64x2048xf32>) -> tensor<4096x2048xf32> {
    ^bb0(%a: tensor<4096x64xf32>, %c: tensor<64x2048xf32>):
      %1 = graph.matmul %a, %c : (tensor<4096x64xf32>, tensor<64x2048xf32>) -> tensor<4096x2048xf32>
      graph.yield %1 : tensor<4096x2048xf32>
    }
    return %0 : tensor<4096x2048xf32>
  }
}

// -----

// What takes arithmetic waits for that: of open sizes there is one body, and no question.
// CHECK-LABEL: func.func @bounded
// CHECK-NOT: tile.streamed
module attributes {graph.symbols = [{name = "rows", min = 1, opt = 16, max = 8192, divisor = 1}]} {
  func.func @main(%x: tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>> {
    %0 = graph.kernel "bounded" (%x) : (tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>> {
    ^bb0(%a: tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>):
      %1 = graph.erf %a : (tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>) -> tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>
      graph.yield %1 : tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>
    }
    return %0 : tensor<?x1024xf32, affine_map<()[s0] -> (s0, 1024)>>
  }
}
