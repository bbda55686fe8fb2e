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

// -----

// Rows and columns of a product that mix are walked as they are stored.
func.func @walked(%x: tensor<4x8xf32>, %y: tensor<8x6xf32>) -> tensor<6x4xf32> {
  // expected-error@+1 {{'graph.kernel' op has no product that it could walk}}
  %0 = graph.kernel "turned"(%x, %y) attributes {graph.walks_product} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<6x4xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>):
    %1 = graph.matmul %a, %b : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %2 = graph.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
    graph.yield %2 : tensor<6x4xf32>
  }
  return %0 : tensor<6x4xf32>
}
