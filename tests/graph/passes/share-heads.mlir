// RUN: charonia-opt %s -recognize-patterns -split-input-file | FileCheck %s

// Views repeat keys and values for each two queries' heads: the attention takes each once.
// CHECK-LABEL: @grouped
// CHECK-SAME:  %[[Q:[a-z0-9]+]]: tensor<1x4x5x8xf32>, %[[K:[a-z0-9]+]]: tensor<1x2x6x8xf32>, %[[V:[a-z0-9]+]]: tensor<1x2x6x8xf32>
// CHECK-NEXT:  graph.attention %[[Q]], %[[K]], %[[V]] {
func.func @grouped(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>) -> tensor<1x4x5x8xf32> {
  %0 = graph.reshape %k : (tensor<1x2x6x8xf32>) -> tensor<1x2x1x6x8xf32>
  %1 = graph.broadcast %0 : (tensor<1x2x1x6x8xf32>) -> tensor<1x2x2x6x8xf32>
  %2 = graph.reshape %1 : (tensor<1x2x2x6x8xf32>) -> tensor<1x4x6x8xf32>
  %3 = graph.reshape %v : (tensor<1x2x6x8xf32>) -> tensor<1x2x1x6x8xf32>
  %4 = graph.broadcast %3 : (tensor<1x2x1x6x8xf32>) -> tensor<1x2x2x6x8xf32>
  %5 = graph.reshape %4 : (tensor<1x2x2x6x8xf32>) -> tensor<1x4x6x8xf32>
  %6 = graph.attention %q, %2, %5 {scale = 1.0 : f64} : (tensor<1x4x5x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>) -> tensor<1x4x5x8xf32>
  return %6 : tensor<1x4x5x8xf32>
}

// -----

// One key for all heads, and a value for each two: what both have in common.
// CHECK-LABEL: @different
// CHECK:       graph.attention %{{.*}} : (tensor<1x4x5x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>)
func.func @different(%q: tensor<1x4x5x8xf32>, %k: tensor<1x1x6x8xf32>, %v: tensor<1x2x6x8xf32>) -> tensor<1x4x5x8xf32> {
  %0 = graph.broadcast %k : (tensor<1x1x6x8xf32>) -> tensor<1x4x6x8xf32>
  %1 = graph.reshape %v : (tensor<1x2x6x8xf32>) -> tensor<1x2x1x6x8xf32>
  %2 = graph.broadcast %1 : (tensor<1x2x1x6x8xf32>) -> tensor<1x2x2x6x8xf32>
  %3 = graph.reshape %2 : (tensor<1x2x2x6x8xf32>) -> tensor<1x4x6x8xf32>
  %4 = graph.attention %q, %0, %3 {scale = 1.0 : f64} : (tensor<1x4x5x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>) -> tensor<1x4x5x8xf32>
  return %4 : tensor<1x4x5x8xf32>
}

// -----

// All keys one after another, again and again, are no groups of neighbours.
// CHECK-LABEL: @turns
// CHECK:       graph.attention %{{.*}} : (tensor<1x4x5x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>)
func.func @turns(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x6x8xf32>) -> tensor<1x4x5x8xf32> {
  %0 = graph.reshape %k : (tensor<1x2x6x8xf32>) -> tensor<1x1x2x6x8xf32>
  %1 = graph.broadcast %0 : (tensor<1x1x2x6x8xf32>) -> tensor<1x2x2x6x8xf32>
  %2 = graph.reshape %1 : (tensor<1x2x2x6x8xf32>) -> tensor<1x4x6x8xf32>
  %3 = graph.attention %q, %2, %2 {scale = 1.0 : f64} : (tensor<1x4x5x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>) -> tensor<1x4x5x8xf32>
  return %3 : tensor<1x4x5x8xf32>
}
