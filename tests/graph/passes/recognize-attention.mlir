// RUN: charonia-opt %s -recognize-patterns -simplify-views -cse -split-input-file | FileCheck %s

!q = tensor<?x4x?x16xf32, affine_map<()[s0, s1] -> (s0, 4, s1, 16)>>
!kt = tensor<?x4x16x?xf32, affine_map<()[s0, s1] -> (s0, 4, 16, s1)>>
!s = tensor<?x4x?x?xf32, affine_map<()[s0, s1] -> (s0, 4, s1, s1)>>
!b = tensor<?x4x?x?xi1, affine_map<()[s0, s1] -> (s0, 4, s1, s1)>>
!m = tensor<?x1x1x?xf32, affine_map<()[s0, s1] -> (s0, 1, 1, s1)>>

// Scales on both operands, an additive mask, rows of NaN replaced.
// CHECK-LABEL: @additive
// CHECK-SAME: (%[[Q:.*]]: tensor{{.*}}, %[[K:.*]]: tensor{{.*}}, %[[V:.*]]: tensor{{.*}}, %[[M:.*]]: tensor
// CHECK-NEXT: %[[A:.*]] = graph.attention %[[Q]], %[[K]], %[[V]] bias %[[M]] {guard = 2 : i32, scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[A]]
func.func @additive(%q: !q, %k: !q, %v: !q, %m: !m) -> !q {
  %half = graph.constant dense<0.5> : tensor<f32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (!q) -> !kt
  %qs = graph.mul %q, %half : (!q, tensor<f32>) -> !q
  %ks = graph.mul %kt, %half : (!kt, tensor<f32>) -> !kt
  %0 = graph.matmul %qs, %ks : (!q, !kt) -> !s
  %1 = graph.add %m, %0 : (!m, !s) -> !s
  %2 = graph.softmax %1 {axis = 3 : i64} : (!s) -> !s
  %3 = graph.is_nan %2 : (!s) -> !b
  %4 = graph.select %3, %zero, %2 : (!b, tensor<f32>, !s) -> !s
  %5 = graph.matmul %4, %v : (!s, !q) -> !q
  return %5 : !q
}

// -----

!q = tensor<?x4x?x16xf32, affine_map<()[s0, s1] -> (s0, 4, s1, 16)>>
!kt = tensor<?x4x16x?xf32, affine_map<()[s0, s1] -> (s0, 4, 16, s1)>>
!s = tensor<?x4x?x?xf32, affine_map<()[s0, s1] -> (s0, 4, s1, s1)>>
!t = tensor<?x?xi1, affine_map<()[s0, s1] -> (s1, s1)>>
!t4 = tensor<1x1x?x?xi1, affine_map<()[s0, s1] -> (1, 1, s1, s1)>>
!t4f = tensor<1x1x?x?xf32, affine_map<()[s0, s1] -> (1, 1, s1, s1)>>
!row = tensor<?x1xi64, affine_map<()[s0, s1] -> (s1, 1)>>
!col = tensor<1x?xi64, affine_map<()[s0, s1] -> (1, s1)>>

// A mask that is a triangle of ranges is no operand.
// CHECK-LABEL: @causal
// CHECK-NEXT: %[[A:.*]] = graph.attention %arg0, %arg1, %arg2 {causal, scale = 1.250000e-01 : f64}
// CHECK-NEXT: return %[[A]]
func.func @causal(%q: !q, %k: !q, %v: !q) -> !q {
  %c = graph.constant dense<0.125> : tensor<f32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %low = graph.constant dense<-3.40282347E+38> : tensor<f32>
  %r = graph.iota {axis = 0 : i64} : () -> !row
  %d = graph.iota {axis = 1 : i64} : () -> !col
  %t = graph.compare ge %r, %d : (!row, !col) -> !t
  %t4 = graph.reshape %t : (!t) -> !t4
  %mask = graph.select %t4, %zero, %low : (!t4, tensor<f32>, tensor<f32>) -> !t4f
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (!q) -> !kt
  %0 = graph.matmul %q, %kt : (!q, !kt) -> !s
  %1 = graph.mul %0, %c : (!s, tensor<f32>) -> !s
  %2 = graph.add %1, %mask : (!s, !t4f) -> !s
  %3 = graph.softmax %2 {axis = 3 : i64} : (!s) -> !s
  %4 = graph.matmul %3, %v : (!s, !q) -> !q
  return %4 : !q
}

// -----

// One column off the triangle is another mask.
// CHECK-LABEL: @not_causal
// CHECK-NOT: causal
// CHECK: graph.attention %arg0, %arg1, %arg2 mask %{{.*}} {scale = 1.000000e+00 : f64} : ({{.*}}, tensor<8x8xi1>)
func.func @not_causal(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %low = graph.constant dense<0xFF800000> : tensor<f32>
  %r = graph.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %d = graph.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %t = graph.compare gt %r, %d : (tensor<8x1xi64>, tensor<1x8xi64>) -> tensor<8x8xi1>
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %0 = graph.matmul %q, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = graph.select %t, %0, %low : (tensor<8x8xi1>, tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %2 = graph.softmax %1 {axis = 3 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %3 = graph.matmul %2, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %3 : tensor<2x4x8x16xf32>
}

// -----

// Fewer rows than columns: the triangle ends at the last column (a cache of keys).
// CHECK-LABEL: @cached
// CHECK: graph.attention %arg0, %arg1, %arg2 {causal, fill = -1.000000e+09 : f64, scale = 1.000000e+00 : f64}
func.func @cached(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x4x3x16xf32> {
  %low = graph.constant dense<-1.0e9> : tensor<f32>
  %five = graph.constant dense<5> : tensor<i64>
  %r = graph.iota {axis = 0 : i64} : () -> tensor<3x1xi64>
  %p = graph.add %r, %five : (tensor<3x1xi64>, tensor<i64>) -> tensor<3x1xi64>
  %d = graph.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %t = graph.compare lt %p, %d : (tensor<3x1xi64>, tensor<1x8xi64>) -> tensor<3x8xi1>
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %0 = graph.matmul %q, %kt : (tensor<2x4x3x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x3x8xf32>
  %1 = graph.select %t, %low, %0 : (tensor<3x8xi1>, tensor<f32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  %2 = graph.softmax %1 {axis = 3 : i64} : (tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  %3 = graph.matmul %2, %v : (tensor<2x4x3x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x3x16xf32>
  return %3 : tensor<2x4x3x16xf32>
}

// -----

// Heads merged with the batch: each is a batch of one head.
// CHECK-LABEL: @merged_heads
// CHECK: graph.attention {{.*}} : (tensor<8x1x5x16xf32>, tensor<8x1x6x16xf32>, tensor<8x1x6x4xf32>, tensor<8x1x1x6xf32>) -> tensor<8x1x5x4xf32>
// CHECK-NEXT: graph.reshape {{.*}} -> tensor<8x5x4xf32>
func.func @merged_heads(%q: tensor<8x5x16xf32>, %kt: tensor<8x16x6xf32>, %v: tensor<8x6x4xf32>, %m: tensor<8x1x6xf32>) -> tensor<8x5x4xf32> {
  %0 = graph.matmul %q, %kt : (tensor<8x5x16xf32>, tensor<8x16x6xf32>) -> tensor<8x5x6xf32>
  %1 = graph.add %0, %m : (tensor<8x5x6xf32>, tensor<8x1x6xf32>) -> tensor<8x5x6xf32>
  %2 = graph.softmax %1 {axis = 2 : i64} : (tensor<8x5x6xf32>) -> tensor<8x5x6xf32>
  %3 = graph.matmul %2, %v : (tensor<8x5x6xf32>, tensor<8x6x4xf32>) -> tensor<8x5x4xf32>
  return %3 : tensor<8x5x4xf32>
}

// -----

// A softmax in f32 between products of halves.
// CHECK-LABEL: @casts
// CHECK: graph.attention %arg0, %{{.*}}, %arg2 {scale = 5.000000e-01 : f64} : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>) -> tensor<1x2x4x8xf16>
func.func @casts(%q: tensor<1x2x4x8xf16>, %kt: tensor<1x2x8x4xf16>, %v: tensor<1x2x4x8xf16>) -> tensor<1x2x4x8xf16> {
  %half = graph.constant dense<0.5> : tensor<f16>
  %0 = graph.matmul %q, %kt : (tensor<1x2x4x8xf16>, tensor<1x2x8x4xf16>) -> tensor<1x2x4x4xf16>
  %1 = graph.mul %0, %half : (tensor<1x2x4x4xf16>, tensor<f16>) -> tensor<1x2x4x4xf16>
  %2 = graph.cast %1 {to = f32} : (tensor<1x2x4x4xf16>) -> tensor<1x2x4x4xf32>
  %3 = graph.softmax %2 {axis = 3 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %4 = graph.cast %3 {to = f16} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf16>
  %5 = graph.matmul %4, %v : (tensor<1x2x4x4xf16>, tensor<1x2x4x8xf16>) -> tensor<1x2x4x8xf16>
  return %5 : tensor<1x2x4x8xf16>
}

// -----

// A softmax along another axis, or of something else, is no attention.
// CHECK-LABEL: @others
// CHECK-NOT: graph.attention
func.func @others(%q: tensor<8x5x16xf32>, %kt: tensor<8x16x5xf32>, %v: tensor<8x5x4xf32>, %x: tensor<8x5x5xf32>) -> (tensor<8x5x4xf32>, tensor<8x5x4xf32>) {
  %0 = graph.matmul %q, %kt : (tensor<8x5x16xf32>, tensor<8x16x5xf32>) -> tensor<8x5x5xf32>
  %1 = graph.softmax %0 {axis = 1 : i64} : (tensor<8x5x5xf32>) -> tensor<8x5x5xf32>
  %2 = graph.matmul %1, %v : (tensor<8x5x5xf32>, tensor<8x5x4xf32>) -> tensor<8x5x4xf32>
  %3 = graph.softmax %x {axis = 2 : i64} : (tensor<8x5x5xf32>) -> tensor<8x5x5xf32>
  %4 = graph.matmul %3, %v : (tensor<8x5x5xf32>, tensor<8x5x4xf32>) -> tensor<8x5x4xf32>
  return %2, %4 : tensor<8x5x4xf32>, tensor<8x5x4xf32>
}

// -----

// A finite fill is a score like others: a row may keep nothing, or only scores
// that are lower. Where every row keeps its own column, one below all scores is as
// good as -inf.
// CHECK-LABEL: @finite_fill
// CHECK: graph.attention %arg0, %arg1, %arg2 mask %arg3 {fill = -1.250000e+08 : f64, scale = 1.250000e-01 : f64}
func.func @finite_fill(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %m: tensor<2x1x8x8xi1>) -> tensor<2x4x8x16xf32> {
  %low = graph.constant dense<-1.0e9> : tensor<f32>
  %c = graph.constant dense<0.125> : tensor<f32>
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %0 = graph.matmul %q, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = graph.select %m, %0, %low : (tensor<2x1x8x8xi1>, tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %2 = graph.mul %1, %c : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %3 = graph.softmax %2 {axis = 3 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %4 = graph.matmul %3, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %4 : tensor<2x4x8x16xf32>
}

// -----

// A triangle of finite fills below another mask: what both leave out is less than
// what one does, as the model says.
// CHECK-LABEL: @finite_triangle_and_padding
// CHECK: graph.attention %arg0, %arg1, %arg2 bias %arg3 {causal, fill = -3.4028234663852886E+38 : f64, scale = 1.000000e+00 : f64}
func.func @finite_triangle_and_padding(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %m: tensor<2x1x1x8xf32>) -> tensor<2x4x8x16xf32> {
  %low = graph.constant dense<-3.40282347E+38> : tensor<f32>
  %r = graph.iota {axis = 0 : i64} : () -> tensor<8x1xi64>
  %d = graph.iota {axis = 1 : i64} : () -> tensor<1x8xi64>
  %t = graph.compare ge %r, %d : (tensor<8x1xi64>, tensor<1x8xi64>) -> tensor<8x8xi1>
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %0 = graph.matmul %q, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = graph.select %t, %0, %low : (tensor<8x8xi1>, tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %2 = graph.add %1, %m : (tensor<2x4x8x8xf32>, tensor<2x1x1x8xf32>) -> tensor<2x4x8x8xf32>
  %3 = graph.softmax %2 {axis = 3 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %4 = graph.matmul %3, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %4 : tensor<2x4x8x16xf32>
}

// -----

// Fills of -inf compose in any order; a finite one behind a bias goes into it.
// CHECK-LABEL: @orders
// CHECK-SAME: %[[M:[^ ]*]]: tensor<2x1x8x8xi1>, %[[B:[^ ]*]]: tensor<2x1x1x8xf32>
// CHECK-DAG: %[[LOW:.*]] = graph.constant dense<-1.000000e+09> : tensor<f32>
// CHECK-DAG: %[[SUM:.*]] = graph.select %[[M]], %[[B]], %[[LOW]]
// CHECK-DAG: graph.attention %arg0, %arg0, %arg0 mask %[[M]] bias %[[SUM]] {fill = 0.000000e+00 : f64, scale = 1.000000e+00 : f64}
// CHECK-DAG: graph.attention %arg0, %arg0, %arg0 mask %[[M]] bias %[[B]] {scale = 1.000000e+00 : f64}
func.func @orders(%q: tensor<2x4x8x16xf32>, %m: tensor<2x1x8x8xi1>, %b: tensor<2x1x1x8xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) {
  %low = graph.constant dense<-1.0e9> : tensor<f32>
  %inf = graph.constant dense<0xFF800000> : tensor<f32>
  %kt = graph.transpose %q {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %0 = graph.matmul %q, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = graph.add %0, %b : (tensor<2x4x8x8xf32>, tensor<2x1x1x8xf32>) -> tensor<2x4x8x8xf32>
  %2 = graph.select %m, %1, %low : (tensor<2x1x8x8xi1>, tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %3 = graph.softmax %2 {axis = 3 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %4 = graph.matmul %3, %q : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %5 = graph.select %m, %1, %inf : (tensor<2x1x8x8xi1>, tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %6 = graph.softmax %5 {axis = 3 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %7 = graph.matmul %6, %q : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %4, %7 : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>
}

// -----

// Columns for each of an image's pixels are three kernels, not one of thousands of registers.
// CHECK-LABEL: @channels
// CHECK-NOT: graph.attention
// CHECK: return
func.func @channels(%x: tensor<1x2048x32xf32>) -> tensor<1x32x2048xf32> {
  %t = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<1x2048x32xf32>) -> tensor<1x32x2048xf32>
  %0 = graph.matmul %t, %x : (tensor<1x32x2048xf32>, tensor<1x2048x32xf32>) -> tensor<1x32x32xf32>
  %1 = graph.softmax %0 {axis = 2 : i64} : (tensor<1x32x32xf32>) -> tensor<1x32x32xf32>
  %2 = graph.matmul %1, %t : (tensor<1x32x32xf32>, tensor<1x32x2048xf32>) -> tensor<1x32x2048xf32>
  return %2 : tensor<1x32x2048xf32>
}

// -----

!q = tensor<12x2x9x16xf32>
!kt = tensor<12x2x16x9xf32>
!s = tensor<12x2x9x9xf32>
!w = tensor<3x4x2x9x9xf32>
!m = tensor<1x4x1x9x9xf32>
!b = tensor<1x2x9x9xf32>

// Windows of three images that share a mask each four: what is added to scores in the shape of
// images is added to those of windows, repeated where images share it.
// CHECK-LABEL: @windows
// CHECK-SAME: (%[[Q:.*]]: tensor{{.*}}, %[[K:.*]]: tensor{{.*}}, %[[V:.*]]: tensor{{.*}}, %[[M:.*]]: tensor{{.*}}, %[[B:.*]]: tensor
// CHECK: %[[ALL:.*]] = graph.broadcast %[[M]] {{.*}} -> tensor<3x4x1x9x9xf32>
// CHECK: %[[EACH:.*]] = graph.reshape %[[ALL]] {{.*}} -> tensor<12x1x9x9xf32>
// CHECK: %[[BIAS:.*]] = graph.add %[[B]], %[[EACH]]
// CHECK: %[[A:.*]] = graph.attention %[[Q]], %[[K]], %[[V]] bias %[[BIAS]]
// CHECK-NEXT: return %[[A]]
func.func @windows(%q: !q, %k: !q, %v: !q, %m: !m, %b: !b) -> !q {
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (!q) -> !kt
  %0 = graph.matmul %q, %kt : (!q, !kt) -> !s
  %1 = graph.add %0, %b : (!s, !b) -> !s
  %2 = graph.reshape %1 : (!s) -> !w
  %3 = graph.add %2, %m : (!w, !m) -> !w
  %4 = graph.reshape %3 : (!w) -> !s
  %5 = graph.softmax %4 {axis = 3 : i64} : (!s) -> !s
  %6 = graph.matmul %5, %v : (!s, !q) -> !q
  return %6 : !q
}

// -----

!q = tensor<12x2x9x16xf32>
!kt = tensor<12x2x16x9xf32>
!s = tensor<12x2x9x9xf32>
!w = tensor<24x81xf32>
!m = tensor<24x1xf32>

// What is added to scores while their rows are part of other dimensions is brought to their shape.
// CHECK-LABEL: @flat
// CHECK-SAME: (%[[Q:.*]]: tensor{{.*}}, %[[K:.*]]: tensor{{.*}}, %[[V:.*]]: tensor{{.*}}, %[[M:.*]]: tensor
// CHECK-NEXT: %[[BIAS:.*]] = graph.reshape %[[M]] {{.*}} -> tensor<1x1x9x9xf32>
// CHECK-NEXT: graph.attention %[[Q]], %[[K]], %[[V]] bias %[[BIAS]]
func.func @flat(%q: !q, %k: !q, %v: !q, %m: tensor<1x81xf32>) -> !q {
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (!q) -> !kt
  %0 = graph.matmul %q, %kt : (!q, !kt) -> !s
  %2 = graph.reshape %0 : (!s) -> !w
  %3 = graph.add %2, %m : (!w, tensor<1x81xf32>) -> !w
  %4 = graph.reshape %3 : (!w) -> !s
  %5 = graph.softmax %4 {axis = 3 : i64} : (!s) -> !s
  %6 = graph.matmul %5, %v : (!s, !q) -> !q
  return %6 : !q
}

// -----

// A softmax of rows that are in other dimensions is another matter.
// CHECK-LABEL: @tangled
// CHECK-NOT: graph.attention
// CHECK: graph.softmax
func.func @tangled(%q: tensor<4x6x8xf32>, %k: tensor<4x8x5xf32>, %v: tensor<4x5x8xf32>) -> tensor<4x6x8xf32> {
  %0 = graph.matmul %q, %k : (tensor<4x6x8xf32>, tensor<4x8x5xf32>) -> tensor<4x6x5xf32>
  %1 = graph.reshape %0 : (tensor<4x6x5xf32>) -> tensor<3x8x5xf32>
  %2 = graph.softmax %1 {axis = 2 : i64} : (tensor<3x8x5xf32>) -> tensor<3x8x5xf32>
  %3 = graph.reshape %2 : (tensor<3x8x5xf32>) -> tensor<4x6x5xf32>
  %4 = graph.matmul %3, %v : (tensor<4x6x5xf32>, tensor<4x5x8xf32>) -> tensor<4x6x8xf32>
  return %4 : tensor<4x6x8xf32>
}

// -----

// Quotients are scales, of what is multiplied and of the product.
// CHECK-LABEL: @quotients
// CHECK-NEXT: %[[A:.*]] = graph.attention %arg0, %arg1, %arg2 {{{.*}}scale = 0.066666{{.*}} : f64}
// CHECK-NEXT: return %[[A]]
func.func @quotients(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %three = graph.constant dense<3.0> : tensor<f32>
  %five = graph.constant dense<5.0> : tensor<f32>
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %qs = graph.div %q, %three : (tensor<2x4x8x16xf32>, tensor<f32>) -> tensor<2x4x8x16xf32>
  %0 = graph.matmul %qs, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %1 = graph.div %0, %five : (tensor<2x4x8x8xf32>, tensor<f32>) -> tensor<2x4x8x8xf32>
  %2 = graph.softmax %1 {axis = 3 : i64} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %3 = graph.matmul %2, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %3 : tensor<2x4x8x16xf32>
}

// -----

!h = tensor<?x5x8xf32, affine_map<()[s0] -> (s0 * 3, 5, 8)>>
!t = tensor<?x8x5xf32, affine_map<()[s0] -> (s0 * 3, 8, 5)>>
!s = tensor<?x5x5xf32, affine_map<()[s0] -> (s0 * 3, 5, 5)>>
!f = tensor<?x3x5x5xf32, affine_map<()[s0] -> (s0, 3, 5, 5)>>
!p = tensor<?x1x1x5xf32, affine_map<()[s0] -> (s0, 1, 1, 5)>>
!a = tensor<?x1x5xf32, affine_map<()[s0] -> (s0 * 3, 1, 5)>>
!r = tensor<?x5x8xf32, affine_map<()[s0] -> (s0 * 3, 5, 8)>>
// Batches and heads that are one dimension of the products and two of the softmax, with a mask of either.
// CHECK-LABEL: @heads_in_batches
// CHECK-SAME:    %[[Q:.*]]: tensor<?x5x8xf32, {{.*}}>, %[[K:.*]]: tensor<{{.*}}>, %[[A:.*]]: tensor<?x1x5xf32, {{.*}}>, %[[P:.*]]: tensor<?x1x1x5xf32
// CHECK-DAG:     graph.reshape %[[Q]] {{.*}} -> tensor<?x3x5x8xf32
// CHECK-DAG:     graph.reshape %[[A]] {{.*}} -> tensor<?x3x1x5xf32
// CHECK:         graph.attention {{.*}} bias {{.*}} -> tensor<?x3x5x8xf32
// CHECK:         graph.reshape {{.*}} -> tensor<?x5x8xf32
// CHECK-NOT:     graph.softmax
module attributes {graph.symbols = [{name = "b", min = 1, max = 16, opt = 2, divisor = 1}]} {
func.func @heads_in_batches(%q: !h, %k: !t, %alibi: !a, %mask: !p) -> !r {
  %0 = graph.matmul %q, %k : (!h, !t) -> !s
  %1 = graph.add %0, %alibi : (!s, !a) -> !s
  %2 = graph.reshape %1 : (!s) -> !f
  %3 = graph.add %2, %mask : (!f, !p) -> !f
  %4 = graph.softmax %3 {axis = 3 : i64} : (!f) -> !f
  %5 = graph.reshape %4 : (!f) -> !s
  %6 = graph.matmul %5, %q : (!s, !h) -> !r
  return %6 : !r
}
}

// -----

// Values that all batches share stay one.
// CHECK-LABEL: @shared_values
// CHECK:         graph.attention {{.*}} tensor<2x3x7x8xf32>) -> tensor<2x3x5x8xf32>
// CHECK-NOT:     graph.softmax
func.func @shared_values(%q: tensor<6x5x8xf32>, %k: tensor<6x8x7xf32>, %v: tensor<1x7x8xf32>) -> tensor<6x5x8xf32> {
  %0 = graph.matmul %q, %k : (tensor<6x5x8xf32>, tensor<6x8x7xf32>) -> tensor<6x5x7xf32>
  %1 = graph.reshape %0 : (tensor<6x5x7xf32>) -> tensor<2x3x5x7xf32>
  %2 = graph.softmax %1 {axis = 3 : i64} : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %3 = graph.reshape %2 : (tensor<2x3x5x7xf32>) -> tensor<6x5x7xf32>
  %4 = graph.matmul %3, %v : (tensor<6x5x7xf32>, tensor<1x7x8xf32>) -> tensor<6x5x8xf32>
  return %4 : tensor<6x5x8xf32>
}

// -----

// A mask that is scaled behind the product is scaled by itself, unless the factor is not known: what is not attention in
// the end is left as it was.
// CHECK-LABEL: @scaled_masks
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<5x7xf32>, %[[F:[a-z0-9]*]]: tensor<3x1x1xf32>
// CHECK:      %[[S:.*]] = graph.matmul
// CHECK-NEXT: %[[A:.*]] = graph.add %[[S]], %[[M]]
// CHECK:      %[[HALF:.*]] = graph.mul %[[M]]
// CHECK:      graph.attention {{.*}} bias %[[HALF]] {scale = 5.000000e-01
// CHECK-NEXT: %[[X:.*]] = graph.mul %[[A]], %[[F]]
// CHECK-NEXT: graph.softmax %[[X]]
// CHECK-NEXT: graph.matmul
!q = tensor<2x3x5x8xf32>
!s = tensor<2x3x5x7xf32>
func.func @scaled_masks(%q: !q, %k: tensor<2x3x8x7xf32>, %v: tensor<2x3x7x8xf32>, %m: tensor<5x7xf32>, %f: tensor<3x1x1xf32>) -> (!q, !q) {
  %half = graph.constant dense<0.5> : tensor<f32>
  %0 = graph.matmul %q, %k : (!q, tensor<2x3x8x7xf32>) -> !s
  %1 = graph.add %0, %m : (!s, tensor<5x7xf32>) -> !s
  %2 = graph.mul %1, %half : (!s, tensor<f32>) -> !s
  %3 = graph.softmax %2 {axis = 3 : i64} : (!s) -> !s
  %4 = graph.matmul %3, %v : (!s, tensor<2x3x7x8xf32>) -> !q
  %5 = graph.mul %1, %f : (!s, tensor<3x1x1xf32>) -> !s
  %6 = graph.softmax %5 {axis = 3 : i64} : (!s) -> !s
  %7 = graph.matmul %6, %v : (!s, tensor<2x3x7x8xf32>) -> !q
  return %4, %7 : !q, !q
}

// -----

!q = tensor<?x4x2x9x8xf32, affine_map<()[s0] -> (s0, 4, 2, 9, 8)>>
!k = tensor<?x4x2x8x9xf32, affine_map<()[s0] -> (s0, 4, 2, 8, 9)>>
!s = tensor<?x4x2x9x9xf32, affine_map<()[s0] -> (s0, 4, 2, 9, 9)>>

// Images, windows, heads: a batch is a window where heads have a bias of their own, and an image where each window has
// one, too, so that nothing has to be written out.
// CHECK-LABEL: @five_dimensions
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<1x2x9x9xf32>, %[[M:[a-z0-9]*]]: tensor<4x1x9x9xf32>
// CHECK-NOT:  graph.broadcast
// CHECK:      graph.attention {{.*}} bias %[[B]] {scale = 1.000000e+00 : f64} {{.*}} -> tensor<?x2x9x8xf32
// CHECK:      graph.reshape {{.*}} -> tensor<?x4x2x9x8xf32
// CHECK:      %[[BOTH:.*]] = graph.add %[[B]], %[[M]] {{.*}} -> tensor<4x2x9x9xf32>
// CHECK:      %[[BIAS:.*]] = graph.reshape %[[BOTH]] {{.*}} -> tensor<1x8x9x9xf32>
// CHECK:      graph.attention {{.*}} bias %[[BIAS]] {{.*}} -> tensor<?x8x9x8xf32
// CHECK-NOT:  graph.softmax
module attributes {graph.symbols = [{name = "b", min = 1, max = 16, opt = 2, divisor = 1}]} {
func.func @five_dimensions(%q: !q, %k: !k, %v: !q, %b: tensor<1x2x9x9xf32>, %m: tensor<4x1x9x9xf32>) -> (!q, !q) {
  %0 = graph.matmul %q, %k : (!q, !k) -> !s
  %1 = graph.add %0, %b : (!s, tensor<1x2x9x9xf32>) -> !s
  %2 = graph.softmax %1 {axis = 4 : i64} : (!s) -> !s
  %3 = graph.matmul %2, %v : (!s, !q) -> !q
  %4 = graph.add %1, %m : (!s, tensor<4x1x9x9xf32>) -> !s
  %5 = graph.softmax %4 {axis = 4 : i64} : (!s) -> !s
  %6 = graph.matmul %5, %v : (!s, !q) -> !q
  return %3, %6 : !q, !q
}
}

// -----

// Heads of a group share keys and values, whether a batch is a group or, for the sake of what is added, has all heads.
// CHECK-LABEL: @groups
// CHECK-NOT: graph.broadcast
// CHECK: graph.attention {{.*}} : (tensor<6x2x9x8xf32>, tensor<6x1x7x8xf32>, tensor<6x1x7x8xf32>) -> tensor<6x2x9x8xf32>
// CHECK: graph.attention {{.*}} : (tensor<2x6x9x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x8xf32>, tensor<1x6x9x7xf32>) -> tensor<2x6x9x8xf32>
func.func @groups(%q: tensor<2x3x2x9x8xf32>, %k: tensor<2x3x1x8x7xf32>, %v: tensor<2x3x1x7x8xf32>, %m: tensor<3x2x9x7xf32>) -> (tensor<2x3x2x9x8xf32>, tensor<2x3x2x9x8xf32>) {
  %0 = graph.matmul %q, %k : (tensor<2x3x2x9x8xf32>, tensor<2x3x1x8x7xf32>) -> tensor<2x3x2x9x7xf32>
  %1 = graph.softmax %0 {axis = 4 : i64} : (tensor<2x3x2x9x7xf32>) -> tensor<2x3x2x9x7xf32>
  %2 = graph.matmul %1, %v : (tensor<2x3x2x9x7xf32>, tensor<2x3x1x7x8xf32>) -> tensor<2x3x2x9x8xf32>
  %3 = graph.add %0, %m : (tensor<2x3x2x9x7xf32>, tensor<3x2x9x7xf32>) -> tensor<2x3x2x9x7xf32>
  %4 = graph.softmax %3 {axis = 4 : i64} : (tensor<2x3x2x9x7xf32>) -> tensor<2x3x2x9x7xf32>
  %5 = graph.matmul %4, %v : (tensor<2x3x2x9x7xf32>, tensor<2x3x1x7x8xf32>) -> tensor<2x3x2x9x8xf32>
  return %2, %5 : tensor<2x3x2x9x8xf32>, tensor<2x3x2x9x8xf32>
}

// -----

!x = tensor<2x4x8x9xf32>
!t = tensor<2x4x9x8xf32>
!s = tensor<2x4x9x9xf32>

// Values on the left of probabilities, whose rows are columns there; a softmax of scores of keys by queries.
// CHECK-LABEL: @turned
// CHECK-SAME: (%[[Q:.*]]: tensor{{.*}}, %[[K:.*]]: tensor{{.*}}, %[[V:.*]]: tensor
// CHECK-DAG:  %[[QT:.*]] = graph.transpose %[[Q]] {permutation = array<i64: 0, 1, 3, 2>}
// CHECK-DAG:  %[[KT:.*]] = graph.transpose %[[K]] {permutation = array<i64: 0, 1, 3, 2>}
// CHECK-DAG:  %[[VT:.*]] = graph.transpose %[[V]] {permutation = array<i64: 0, 1, 3, 2>}
// CHECK:      %[[A:.*]] = graph.attention %[[QT]], %[[KT]], %[[VT]] {scale = 1.000000e+00 : f64}
// CHECK:      %[[Y:.*]] = graph.transpose %[[A]] {permutation = array<i64: 0, 1, 3, 2>}
// CHECK-NEXT: return %[[Y]], %[[Y]]
func.func @turned(%q: !x, %k: !x, %v: !x) -> (!x, !x) {
  %qt = graph.transpose %q {permutation = array<i64: 0, 1, 3, 2>} : (!x) -> !t
  %kt = graph.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : (!x) -> !t
  %0 = graph.matmul %qt, %k : (!t, !x) -> !s
  %1 = graph.softmax %0 {axis = 3 : i64} : (!s) -> !s
  %2 = graph.transpose %1 {permutation = array<i64: 0, 1, 3, 2>} : (!s) -> !s
  %3 = graph.matmul %v, %2 : (!x, !s) -> !x
  %4 = graph.matmul %kt, %q : (!t, !x) -> !s
  %5 = graph.softmax %4 {axis = 2 : i64} : (!s) -> !s
  %6 = graph.matmul %v, %5 : (!x, !s) -> !x
  return %3, %6 : !x, !x
}

// -----

!q = tensor<2x4x9x8xf32>
!k = tensor<2x4x8x9xf32>
!s = tensor<2x4x9x9xf32>

// Factors of rows are factors of queries; those of columns or single scores are none.
// CHECK-LABEL: @row_scales
// CHECK-SAME: (%[[Q:.*]]: tensor<{{.*}}>, %[[K:.*]]: tensor<{{.*}}>, %[[V:.*]]: tensor<{{.*}}>, %[[F:.*]]: tensor<4x1x1xf32>, %[[G:.*]]: tensor<9x1xf32>
// CHECK:      %[[F4:.*]] = graph.reshape %[[F]] {{.*}} -> tensor<1x4x1x1xf32>
// CHECK-NEXT: %[[P:.*]] = graph.mul %[[Q]], %[[F4]]
// CHECK-NEXT: %[[D:.*]] = graph.div %[[P]], %[[G]]
// CHECK:      graph.attention %[[D]], {{.*}}, %[[V]] {scale = 2.000000e+00 : f64}
// CHECK:      graph.softmax
// CHECK-NOT:  graph.attention
func.func @row_scales(%q: !q, %k: !k, %v: !q, %f: tensor<4x1x1xf32>, %g: tensor<9x1xf32>, %h: tensor<1x9xf32>) -> (!q, !q) {
  %two = graph.constant dense<2.0> : tensor<f32>
  %0 = graph.matmul %q, %k : (!q, !k) -> !s
  %1 = graph.div %0, %g : (!s, tensor<9x1xf32>) -> !s
  %2 = graph.mul %1, %two : (!s, tensor<f32>) -> !s
  %3 = graph.mul %f, %2 : (tensor<4x1x1xf32>, !s) -> !s
  %4 = graph.softmax %3 {axis = 3 : i64} : (!s) -> !s
  %5 = graph.matmul %4, %v : (!s, !q) -> !q
  %6 = graph.mul %0, %h : (!s, tensor<1x9xf32>) -> !s
  %7 = graph.softmax %6 {axis = 3 : i64} : (!s) -> !s
  %8 = graph.matmul %7, %v : (!s, !q) -> !q
  return %5, %8 : !q, !q
}
