// RUN: charonia-opt %s -recognize-patterns -simplify-views -cse | FileCheck %s

!q = tensor<2x4x9x8xf32>

// What the model has as an attention already: its mask says that it is causal, or nothing; another one stays, and is
// also what a bias of 0 and -inf says.
// CHECK-LABEL: @masks_of_attention
// CHECK:      %[[C:.*]] = graph.attention %arg0, %arg1, %arg2 {causal, guard = 1 : i32, scale = 1.000000e+00 : f64}
// CHECK-NEXT: %[[A:.*]] = graph.attention %arg0, %arg1, %arg2 {guard = 1 : i32, scale = 1.000000e+00 : f64}
// CHECK-NEXT: %[[F:.*]] = graph.attention %arg0, %arg1, %arg2 {causal, scale = 1.000000e+00 : f64}
// CHECK-NEXT: %[[O:.*]] = graph.attention %arg0, %arg1, %arg2 mask %arg3 {
// CHECK-NEXT: %[[B:.*]] = graph.attention %arg0, %arg1, %arg2 bias %arg4 {
// CHECK-NEXT: return %[[C]], %[[A]], %[[F]], %[[O]], %[[B]], %[[O]]
func.func @masks_of_attention(%q: !q, %k: !q, %v: !q, %m: tensor<9x9xi1>, %b: tensor<9x9xf32>) -> (!q, !q, !q, !q, !q, !q) {
  %s = graph.iota {axis = 0 : i64} : () -> tensor<9x1xi64>
  %t = graph.iota {axis = 1 : i64} : () -> tensor<1x9xi64>
  %z = graph.constant dense<0> : tensor<i64>
  %causal = graph.compare le %t, %s : (tensor<1x9xi64>, tensor<9x1xi64>) -> tensor<9x9xi1>
  %all = graph.compare ge %t, %z : (tensor<1x9xi64>, tensor<i64>) -> tensor<1x9xi1>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %least = graph.constant dense<-3.40282347E+38> : tensor<f32>
  %added = graph.select %causal, %zero, %least : (tensor<9x9xi1>, tensor<f32>, tensor<f32>) -> tensor<9x9xf32>
  %0 = graph.attention %q, %k, %v mask %causal {scale = 1.0 : f64, guard = 1 : i32} : (!q, !q, !q, tensor<9x9xi1>) -> !q
  %1 = graph.attention %q, %k, %v mask %all {scale = 1.0 : f64, guard = 1 : i32} : (!q, !q, !q, tensor<1x9xi1>) -> !q
  %2 = graph.attention %q, %k, %v bias %added {scale = 1.0 : f64} : (!q, !q, !q, tensor<9x9xf32>) -> !q
  %3 = graph.attention %q, %k, %v mask %m {scale = 1.0 : f64, guard = 1 : i32} : (!q, !q, !q, tensor<9x9xi1>) -> !q
  %4 = graph.attention %q, %k, %v mask %all bias %b {scale = 1.0 : f64, guard = 1 : i32} : (!q, !q, !q, tensor<1x9xi1>, tensor<9x9xf32>) -> !q
  %inf = graph.constant dense<0xFF800000> : tensor<f32>
  %low = graph.select %m, %zero, %inf : (tensor<9x9xi1>, tensor<f32>, tensor<f32>) -> tensor<9x9xf32>
  %5 = graph.attention %q, %k, %v bias %low {scale = 1.0 : f64, guard = 1 : i32} : (!q, !q, !q, tensor<9x9xf32>) -> !q
  return %0, %1, %2, %3, %4, %5 : !q, !q, !q, !q, !q, !q
}
