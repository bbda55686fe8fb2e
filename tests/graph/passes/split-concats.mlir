// RUN: charonia-opt %s -split-concats=most=3 | FileCheck %s
// RUN: not charonia-opt %s -split-concats=most=1 2>&1 | FileCheck %s --check-prefix=MOST

// Operands of one size make parts that are equal, and so one kernel. A part
// stands where its last operand is there.

// CHECK-LABEL: func.func @tree
// CHECK-NEXT: %[[N:.+]] = graph.neg %arg2
// CHECK-NEXT: %[[A:.+]] = graph.concat %arg0, %arg1, %[[N]] {axis = 0 : i64}
// CHECK-NEXT: graph.abs
// CHECK-NEXT: %[[B:.+]] = graph.concat %arg3, %arg4, %arg5 {axis = 0 : i64}
// CHECK-NEXT: graph.concat %[[A]], %[[B]], %arg6 {axis = 0 : i64}
func.func @tree(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<2x4xf32>, %d: tensor<2x4xf32>,
                %e: tensor<2x4xf32>, %f: tensor<2x4xf32>, %g: tensor<2x4xf32>)
    -> (tensor<14x4xf32>, tensor<2x4xf32>) {
  %n = graph.neg %c : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = graph.abs %g : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = graph.concat %a, %b, %n, %d, %e, %f, %g {axis = 0 : i64}
      : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>,
         tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<14x4xf32>
  return %y, %z : tensor<14x4xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @narrow
// CHECK-NEXT: graph.concat %arg0, %arg1, %arg2
// CHECK-NEXT: return
func.func @narrow(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<2x4xf32>) -> tensor<6x4xf32> {
  %y = graph.concat %a, %b, %c {axis = 0 : i64}
      : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

// Symbolic sizes: two at a time, as a quarter of three would be none.
#n = affine_map<()[s0] -> (s0, 4)>
#n3 = affine_map<()[s0] -> (s0 * 3, 4)>
// CHECK-LABEL: func.func @symbolic
// CHECK-NEXT: %[[A:.+]] = graph.concat %arg0, %arg1 {axis = 0 : i64}
// CHECK-NEXT: graph.concat %[[A]], %arg2 {axis = 0 : i64}
func.func @symbolic(%a: tensor<?x4xf32, #n>, %b: tensor<?x4xf32, #n>, %c: tensor<?x4xf32, #n>)
    -> tensor<?x4xf32, #n3> {
  %y = graph.concat %a, %b, %c {axis = 0 : i64}
      : (tensor<?x4xf32, #n>, tensor<?x4xf32, #n>, tensor<?x4xf32, #n>) -> tensor<?x4xf32, #n3>
  return %y : tensor<?x4xf32, #n3>
}

// MOST: error: most is at least 2
