// RUN: charonia-opt %s -outline-constants | FileCheck %s

module {
// Equal constants share a weight; splats stay, as kernels hold them.
// CHECK-LABEL: @main
// CHECK-DAG: %[[A:.*]] = graph.weight "constant" : tensor<3xf32>
// CHECK-DAG: %[[B:.*]] = graph.weight "constant" : tensor<3xf32>
// CHECK-DAG: %[[S:.*]] = graph.constant dense<2.000000e+00>
// CHECK-DAG: %[[M:.*]] = graph.weight "constant.1" : tensor<3xi1>
// CHECK: graph.add %arg0, %[[A]]
// CHECK: graph.mul %{{.*}}, %[[S]]
// CHECK: graph.select %[[M]], %{{.*}}, %[[B]]
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = graph.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = graph.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %s = graph.constant dense<2.0> : tensor<3xf32>
  %m = graph.constant dense<[true, false, true]> : tensor<3xi1>
  %0 = graph.add %x, %a : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = graph.mul %0, %s : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %2 = graph.select %m, %1, %b : (tensor<3xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>
}
}
