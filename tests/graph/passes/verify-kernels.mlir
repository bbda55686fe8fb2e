// RUN: charonia-opt %s -verify-kernels -split-input-file -verify-diagnostics

func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'graph.exp' op was left outside of the kernels}}
  %0 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @anchors(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@+1 {{'graph.kernel' op has more than one anchor}}
  %0 = graph.kernel "two"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %1 = graph.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = graph.matmul %1, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    graph.yield %2 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

func.func @weight(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = graph.kernel "add"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error@+1 {{'graph.weight' op is inside of a kernel; weights are its operands}}
    %w = graph.weight "w" : tensor<4xf32>
    %1 = graph.add %a, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
