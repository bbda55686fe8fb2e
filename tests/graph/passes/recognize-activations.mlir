// RUN: charonia-opt %s -recognize-patterns | FileCheck %s

!x = tensor<4x8xf32>

// CHECK-LABEL: @erf
// CHECK-NEXT: %[[G:.*]] = graph.gelu %arg0 :
// CHECK-NEXT: return %[[G]]
func.func @erf(%x: !x) -> !x {
  %s = graph.constant dense<0.707106769> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.mul %x, %s : (!x, tensor<f32>) -> !x
  %1 = graph.erf %0 : (!x) -> !x
  %2 = graph.add %1, %one : (!x, tensor<f32>) -> !x
  %3 = graph.mul %x, %2 : (!x, !x) -> !x
  %4 = graph.mul %3, %half : (!x, tensor<f32>) -> !x
  return %4 : !x
}

// CHECK-LABEL: @erf_of_quotient
// CHECK-NEXT: %[[G:.*]] = graph.gelu %arg0 :
// CHECK-NEXT: return %[[G]]
func.func @erf_of_quotient(%x: !x) -> !x {
  %s = graph.constant dense<1.41421354> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.div %x, %s : (!x, tensor<f32>) -> !x
  %1 = graph.erf %0 : (!x) -> !x
  %2 = graph.add %1, %one : (!x, tensor<f32>) -> !x
  %3 = graph.mul %x, %2 : (!x, !x) -> !x
  %4 = graph.mul %3, %half : (!x, tensor<f32>) -> !x
  return %4 : !x
}

// Divided by what it would have to be multiplied by.
// CHECK-LABEL: @no_gelu
// CHECK-NOT: graph.gelu
func.func @no_gelu(%x: !x, %y: !x) -> (!x, !x) {
  %s = graph.constant dense<0.707106769> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.div %s, %x : (tensor<f32>, !x) -> !x
  %1 = graph.erf %0 : (!x) -> !x
  %2 = graph.add %1, %one : (!x, tensor<f32>) -> !x
  %3 = graph.mul %x, %2 : (!x, !x) -> !x
  %4 = graph.mul %3, %half : (!x, tensor<f32>) -> !x
  %5 = graph.mul %x, %s : (!x, tensor<f32>) -> !x
  %6 = graph.erf %5 : (!x) -> !x
  %7 = graph.add %6, %one : (!x, tensor<f32>) -> !x
  %8 = graph.div %x, %7 : (!x, !x) -> !x
  %9 = graph.mul %8, %half : (!x, tensor<f32>) -> !x
  return %4, %9 : !x, !x
}

// CHECK-LABEL: @erfc
// CHECK-NEXT: %[[G:.*]] = graph.gelu %arg0 :
// CHECK-NEXT: return %[[G]]
func.func @erfc(%x: !x) -> !x {
  %s = graph.constant dense<0.707106769> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.neg %x : (!x) -> !x
  %1 = graph.mul %0, %s : (!x, tensor<f32>) -> !x
  %2 = graph.erfc %1 : (!x) -> !x
  %3 = graph.mul %x, %2 : (!x, !x) -> !x
  %4 = graph.mul %3, %half : (!x, tensor<f32>) -> !x
  return %4 : !x
}

// The other tail: -gelu(-x).
// CHECK-LABEL: @other_tail
// CHECK: graph.erfc
// CHECK-NOT: graph.gelu
func.func @other_tail(%x: !x) -> !x {
  %s = graph.constant dense<0.707106769> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.mul %x, %s : (!x, tensor<f32>) -> !x
  %1 = graph.erfc %0 : (!x) -> !x
  %2 = graph.mul %x, %1 : (!x, !x) -> !x
  %3 = graph.mul %2, %half : (!x, tensor<f32>) -> !x
  return %3 : !x
}

// CHECK-LABEL: @tanh
// CHECK-NEXT: %[[G:.*]] = graph.gelu %arg0 {tanh}
// CHECK-NEXT: return %[[G]]
func.func @tanh(%x: !x) -> !x {
  %half = graph.constant dense<0.5> : tensor<f32>
  %c = graph.constant dense<0.044715> : tensor<f32>
  %o = graph.constant dense<0.797884583> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %h = graph.mul %x, %half : (!x, tensor<f32>) -> !x
  %0 = graph.mul %x, %x : (!x, !x) -> !x
  %1 = graph.mul %0, %x : (!x, !x) -> !x
  %2 = graph.mul %1, %c : (!x, tensor<f32>) -> !x
  %3 = graph.add %x, %2 : (!x, !x) -> !x
  %4 = graph.mul %3, %o : (!x, tensor<f32>) -> !x
  %5 = graph.tanh %4 : (!x) -> !x
  %6 = graph.add %5, %one : (!x, tensor<f32>) -> !x
  %7 = graph.mul %h, %6 : (!x, !x) -> !x
  return %7 : !x
}

// x * (1 + c x^2) inside.
// CHECK-LABEL: @tanh_factored
// CHECK-NEXT: %[[G:.*]] = graph.gelu %arg0 {tanh}
// CHECK-NEXT: return %[[G]]
func.func @tanh_factored(%x: !x) -> !x {
  %half = graph.constant dense<0.5> : tensor<f32>
  %c = graph.constant dense<0.044715> : tensor<f32>
  %o = graph.constant dense<0.797884583> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %0 = graph.mul %x, %x : (!x, !x) -> !x
  %1 = graph.mul %0, %c : (!x, tensor<f32>) -> !x
  %2 = graph.add %one, %1 : (tensor<f32>, !x) -> !x
  %3 = graph.mul %x, %o : (!x, tensor<f32>) -> !x
  %4 = graph.mul %3, %2 : (!x, !x) -> !x
  %5 = graph.tanh %4 : (!x) -> !x
  %6 = graph.add %5, %one : (!x, tensor<f32>) -> !x
  %7 = graph.mul %x, %6 : (!x, !x) -> !x
  %8 = graph.mul %7, %half : (!x, tensor<f32>) -> !x
  return %8 : !x
}

// Another constant is another function.
// CHECK-LABEL: @not_gelu
// CHECK-NOT: graph.gelu
func.func @not_gelu(%x: !x) -> !x {
  %s = graph.constant dense<0.75> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.mul %x, %s : (!x, tensor<f32>) -> !x
  %1 = graph.erf %0 : (!x) -> !x
  %2 = graph.add %1, %one : (!x, tensor<f32>) -> !x
  %3 = graph.mul %x, %2 : (!x, !x) -> !x
  %4 = graph.mul %3, %half : (!x, tensor<f32>) -> !x
  return %4 : !x
}

// Something else reads what is between.
// CHECK-LABEL: @bell_read_elsewhere
// CHECK-NOT: graph.gelu
// CHECK: return
func.func @bell_read_elsewhere(%x: !x) -> (!x, !x) {
  %s = graph.constant dense<0.707106769> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.mul %x, %s : (!x, tensor<f32>) -> !x
  %1 = graph.erf %0 : (!x) -> !x
  %2 = graph.add %1, %one : (!x, tensor<f32>) -> !x
  %3 = graph.mul %x, %2 : (!x, !x) -> !x
  %4 = graph.mul %3, %half : (!x, tensor<f32>) -> !x
  return %4, %2 : !x, !x
}
