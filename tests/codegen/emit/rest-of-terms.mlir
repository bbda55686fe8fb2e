// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 -cse -canonicalize -mlir-print-local-scope | FileCheck %s --check-prefix=V3

// A number of terms that no step of about the length that is best divides, as a prime, is not summed term by term: a shorter
// step follows the others, and none looks at a term's place.
// CHECK-LABEL: func.func @prime
// CHECK: scf.for
// CHECK: tile.load {{.*}}checks = array<i64>{{.*}}tensor<14x8xf32>
// CHECK: tile.load {{.*}}checks = array<i64>{{.*}}tensor<8x32xf32>
// CHECK: tile.dot {{.*}} -> tensor<14x32xf32>
// CHECK: tile.load {{.*}}checks = array<i64>{{.*}}tensor<14x3xf32>
// CHECK: tile.load {{.*}}checks = array<i64>{{.*}}tensor<3x32xf32>
// CHECK: tile.dot {{.*}} -> tensor<14x32xf32>
// CHECK-NOT: tile.dot

// Steps of the same length that are nearly as long stay.
// CHECK-LABEL: func.func @even
// CHECK: tile.load {{.*}}tensor<14x6xf32>
// CHECK: tile.dot
// CHECK-NOT: tile.dot

// The terms of each place of a window.
// CHECK-LABEL: func.func @window
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.load {{.*}}tensor<8x32xf32>
// CHECK: tile.dot
// CHECK: tile.load {{.*}}tensor<5x32xf32>
// CHECK: tile.dot
// Halves under a mask, which AVX2 loads one by one, stay in short steps.
// V3-LABEL: func.func @halves
// V3-NOT: tensor<8x
// V3: tile.load {{.*}}tensor<2x{{[0-9]+}}xf16>
// V3-NOT: tensor<8x
// V3: return
module {
  func.func @main(%x: tensor<56x59xf32>, %w: tensor<59x2048xf32>, %y: tensor<56x60xf32>, %v: tensor<60x2048xf32>, %i: tensor<1x30x30x37xf32>, %f: tensor<64x3x3x37xf32>, %g: tensor<35x38xf16>, %h: tensor<38x1044xf16>) -> (tensor<56x2048xf32>, tensor<56x2048xf32>, tensor<1x28x28x64xf32>, tensor<35x1044xf16>) {
    %0 = graph.kernel "prime" (%x, %w) : (tensor<56x59xf32>, tensor<59x2048xf32>) -> tensor<56x2048xf32> {
    ^bb0(%a: tensor<56x59xf32>, %b: tensor<59x2048xf32>):
      %p = graph.matmul %a, %b : (tensor<56x59xf32>, tensor<59x2048xf32>) -> tensor<56x2048xf32>
      graph.yield %p : tensor<56x2048xf32>
    }
    %1 = graph.kernel "even" (%y, %v) : (tensor<56x60xf32>, tensor<60x2048xf32>) -> tensor<56x2048xf32> {
    ^bb0(%a: tensor<56x60xf32>, %b: tensor<60x2048xf32>):
      %p = graph.matmul %a, %b : (tensor<56x60xf32>, tensor<60x2048xf32>) -> tensor<56x2048xf32>
      graph.yield %p : tensor<56x2048xf32>
    }
    %2 = graph.kernel "window" (%i, %f) : (tensor<1x30x30x37xf32>, tensor<64x3x3x37xf32>) -> tensor<1x28x28x64xf32> {
    ^bb0(%a: tensor<1x30x30x37xf32>, %b: tensor<64x3x3x37xf32>):
      %p = graph.conv %a, %b {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64, channels_last} : (tensor<1x30x30x37xf32>, tensor<64x3x3x37xf32>) -> tensor<1x28x28x64xf32>
      graph.yield %p : tensor<1x28x28x64xf32>
    }
    %3 = graph.kernel "halves" (%g, %h) : (tensor<35x38xf16>, tensor<38x1044xf16>) -> tensor<35x1044xf16> {
    ^bb0(%a: tensor<35x38xf16>, %b: tensor<38x1044xf16>):
      %p = graph.matmul %a, %b : (tensor<35x38xf16>, tensor<38x1044xf16>) -> tensor<35x1044xf16>
      graph.yield %p : tensor<35x1044xf16>
    }
    return %0, %1, %2, %3 : tensor<56x2048xf32>, tensor<56x2048xf32>, tensor<1x28x28x64xf32>, tensor<35x1044xf16>
  }
}
