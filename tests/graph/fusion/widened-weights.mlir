// A product of few rows widens its weights by itself; for more rows they are prepared.
// RUN: charonia-opt %s --split-prepare=widened-rows=8 --form-kernels=widened-rows=8 --verify-kernels --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT:     prepared
// CHECK:         %[[W:.*]] = graph.weight "w" : tensor<64x32xi8>
// CHECK:         graph.kernel "matmul"(
// CHECK:           graph.cast
// CHECK:           graph.mul
// CHECK:           graph.matmul
// CHECK-NOT:     graph.kernel
module {
  func.func @main(%x: tensor<8x64xf16>) -> tensor<8x32xf16> {
    %w = graph.weight "w" : tensor<64x32xi8>
    %s = graph.weight "s" : tensor<32xf16>
    %c = graph.cast %w {to = f16} : (tensor<64x32xi8>) -> tensor<64x32xf16>
    %m = graph.mul %c, %s : (tensor<64x32xf16>, tensor<32xf16>) -> tensor<64x32xf16>
    %y = graph.matmul %x, %m : (tensor<8x64xf16>, tensor<64x32xf16>) -> tensor<8x32xf16>
    return %y : tensor<8x32xf16>
  }
}

// -----

// CHECK-LABEL: func.func @main
// CHECK:         graph.weight "prepared.0" : tensor<64x32xf16>
// CHECK:         graph.kernel "matmul"(
// CHECK-NOT:       graph.mul
// CHECK:           graph.matmul
module {
  func.func @main(%x: tensor<9x64xf16>) -> tensor<9x32xf16> {
    %w = graph.weight "w" : tensor<64x32xi8>
    %s = graph.weight "s" : tensor<32xf16>
    %c = graph.cast %w {to = f16} : (tensor<64x32xi8>) -> tensor<64x32xf16>
    %m = graph.mul %c, %s : (tensor<64x32xf16>, tensor<32xf16>) -> tensor<64x32xf16>
    %y = graph.matmul %x, %m : (tensor<9x64xf16>, tensor<64x32xf16>) -> tensor<9x32xf16>
    return %y : tensor<9x32xf16>
  }
}
