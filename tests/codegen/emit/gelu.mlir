// RUN: charonia-opt %s -emit-tiles=target=gpu -cse -canonicalize | FileCheck %s
// RUN: charonia-opt %s -emit-tiles -cse -canonicalize | FileCheck %s --check-prefix=CPU

// Of 16 bits on a GPU by what the hardware has; of 32 bits, and for CPUs, by erf.
// CHECK-LABEL: func.func @half(
// CHECK-NOT:     math.erf
// CHECK:         math.exp2
// CHECK-LABEL: func.func @single(
// CHECK:         math.erf
// CPU-LABEL: func.func @half(
// CPU:         math.erf
module {
  func.func @main(%x: tensor<1000xf16>, %y: tensor<1000xf32>) -> (tensor<1000xf16>, tensor<1000xf32>) {
    %0 = graph.kernel "half" (%x) : (tensor<1000xf16>) -> tensor<1000xf16> {
    ^bb0(%a: tensor<1000xf16>):
      %2 = graph.gelu %a : (tensor<1000xf16>) -> tensor<1000xf16>
      graph.yield %2 : tensor<1000xf16>
    }
    %1 = graph.kernel "single" (%y) : (tensor<1000xf32>) -> tensor<1000xf32> {
    ^bb0(%a: tensor<1000xf32>):
      %2 = graph.gelu %a : (tensor<1000xf32>) -> tensor<1000xf32>
      graph.yield %2 : tensor<1000xf32>
    }
    return %0, %1 : tensor<1000xf16>, tensor<1000xf32>
  }
}
