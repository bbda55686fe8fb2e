// RUN: charonia-opt %s -canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: @scale
// CHECK-NEXT: %[[C:.*]] = graph.constant dense<1.250000e-01> : tensor<f32>
// CHECK-NEXT: return %[[C]]
func.func @scale() -> tensor<f32> {
  %d = graph.constant dense<64> : tensor<i64>
  %f = graph.cast %d {to = f32} : (tensor<i64>) -> tensor<f32>
  %s = graph.sqrt %f : (tensor<f32>) -> tensor<f32>
  %one = graph.constant dense<1.0> : tensor<1xf32>
  %r = graph.div %one, %s : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
  %q = graph.reshape %r : (tensor<1xf32>) -> tensor<f32>
  return %q : tensor<f32>
}

// -----

// CHECK-LABEL: @elements
// CHECK-NEXT: %[[C:.*]] = graph.constant dense<{{\[\[}}1.500000e+00, 3.500000e+00], [2.500000e+00, 4.500000e+00]]> : tensor<2x2xf16>
// CHECK-NEXT: return %[[C]]
func.func @elements() -> tensor<2x2xf16> {
  %a = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf16>
  %h = graph.constant dense<0.5> : tensor<f16>
  %t = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<2x2xf16>) -> tensor<2x2xf16>
  %s = graph.add %t, %h : (tensor<2x2xf16>, tensor<f16>) -> tensor<2x2xf16>
  return %s : tensor<2x2xf16>
}

// -----

// Concat, gather, pad and slice move elements, of floats as well.
// CHECK-LABEL: @moves
// CHECK-NEXT: %[[C:.*]] = graph.constant dense<[9.000000e+00, 4.000000e+00, 2.000000e+00, 9.000000e+00]> : tensor<4xf32>
// CHECK-NEXT: return %[[C]]
func.func @moves() -> tensor<4xf32> {
  %a = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = graph.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %c = graph.concat %a, %b {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %i = graph.constant dense<[-1, 1]> : tensor<2xi64>
  %g = graph.gather %c, %i {axis = 0 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  %v = graph.constant dense<9.0> : tensor<f32>
  %p = graph.pad constant %g, %v {lows = affine_map<() -> (1)>} : (tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

// What has no value is left to the kernels.
// CHECK-LABEL: @no_value
// CHECK: graph.div
// CHECK: graph.cast
func.func @no_value() -> (tensor<i32>, tensor<i8>) {
  %a = graph.constant dense<1> : tensor<i32>
  %z = graph.constant dense<0> : tensor<i32>
  %d = graph.div %a, %z : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %f = graph.constant dense<1.0e9> : tensor<f32>
  %c = graph.cast %f {to = i8} : (tensor<f32>) -> tensor<i8>
  return %d, %c : tensor<i32>, tensor<i8>
}

// -----

// CHECK-LABEL: @integers
// CHECK-DAG: graph.constant dense<-2> : tensor<i32>
// CHECK-DAG: graph.constant dense<1> : tensor<i32>
// CHECK-DAG: graph.constant dense<-128> : tensor<i8>
// CHECK-DAG: graph.constant dense<true> : tensor<i1>
func.func @integers() -> (tensor<i32>, tensor<i32>, tensor<i8>, tensor<i1>) {
  %a = graph.constant dense<-5> : tensor<i32>
  %b = graph.constant dense<2> : tensor<i32>
  %d = graph.div %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %m = graph.mod %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %x = graph.constant dense<127> : tensor<i8>
  %one = graph.constant dense<1> : tensor<i8>
  %w = graph.add %x, %one : (tensor<i8>, tensor<i8>) -> tensor<i8>
  %c = graph.compare lt %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
  return %d, %m, %w, %c : tensor<i32>, tensor<i32>, tensor<i8>, tensor<i1>
}
