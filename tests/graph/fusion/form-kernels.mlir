// RUN: charonia-opt %s --form-kernels --verify-kernels --split-input-file | FileCheck %s

// A matmul takes its bias, the activation and the residual, through a reshape.
// CHECK-LABEL: func.func @epilogue
// CHECK:         %[[R:.*]] = graph.kernel "matmul_add_gelu_add"
// CHECK-NOT:     graph.kernel
// CHECK:         return %[[R]]
func.func @epilogue(%x: tensor<128x64xf32>, %r: tensor<1x128x32xf32>) -> tensor<1x128x32xf32> {
  %w = graph.weight "w" : tensor<64x32xf32>
  %b = graph.weight "b" : tensor<32xf32>
  %0 = graph.matmul %x, %w : (tensor<128x64xf32>, tensor<64x32xf32>) -> tensor<128x32xf32>
  %1 = graph.add %0, %b : (tensor<128x32xf32>, tensor<32xf32>) -> tensor<128x32xf32>
  %2 = graph.gelu %1 : (tensor<128x32xf32>) -> tensor<128x32xf32>
  %3 = graph.reshape %2 : (tensor<128x32xf32>) -> tensor<1x128x32xf32>
  %4 = graph.add %3, %r : (tensor<1x128x32xf32>, tensor<1x128x32xf32>) -> tensor<1x128x32xf32>
  return %4 : tensor<1x128x32xf32>
}

// -----

// What is read elsewhere becomes a second result; splats are copied inside.
// CHECK-LABEL: func.func @two_results
// CHECK:         graph.kernel "matmul_max"
// CHECK-SAME:      -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK:           %[[M:.*]] = graph.matmul
// CHECK:           graph.constant
// CHECK:           %[[S:.*]] = graph.max
// CHECK:           graph.yield %[[M]], %[[S]]
// CHECK:         graph.kernel "softmax"
func.func @two_results(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = graph.max %0, %zero : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %2 = graph.softmax %0 {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Reductions over the same rows share a kernel: a softmax written out, of any length.
#shape = affine_map<()[s0] -> (4, s0)>
#col = affine_map<()[s0] -> (4, 1)>
module attributes {graph.symbols = [{name = "n", min = 1, opt = 64, max = 128, divisor = 1}]} {
  // CHECK-LABEL: func.func @rows
  // CHECK:         graph.kernel "reduce_sub_exp_reduce_div"
  // CHECK-NOT:     graph.kernel
  // CHECK:         return
  func.func @rows(%x: tensor<4x?xf32, #shape>) -> tensor<4x?xf32, #shape> {
    %0 = graph.reduce max %x {axes = array<i64: 1>, keepdims} : (tensor<4x?xf32, #shape>) -> tensor<4x1xf32>
    %1 = graph.sub %x, %0 : (tensor<4x?xf32, #shape>, tensor<4x1xf32>) -> tensor<4x?xf32, #shape>
    %2 = graph.exp %1 : (tensor<4x?xf32, #shape>) -> tensor<4x?xf32, #shape>
    %3 = graph.reduce sum %2 {axes = array<i64: 1>, keepdims} : (tensor<4x?xf32, #shape>) -> tensor<4x1xf32>
    %4 = graph.div %2, %3 : (tensor<4x?xf32, #shape>, tensor<4x1xf32>) -> tensor<4x?xf32, #shape>
    return %4 : tensor<4x?xf32, #shape>
  }
}

// -----

// Reductions over other rows do not.
// CHECK-LABEL: func.func @other_rows
// CHECK:         graph.kernel "reduce"
// CHECK:         graph.kernel "reduce.1"
func.func @other_rows(%x: tensor<4x8x16xf32>) -> tensor<4xf32> {
  %0 = graph.reduce sum %x {axes = array<i64: 2>} : (tensor<4x8x16xf32>) -> tensor<4x8xf32>
  %1 = graph.reduce max %0 {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Embedding and normalization: gathers and adds before the rows, scale and shift
// after; the sum is stored too, for the residual.
// CHECK-LABEL: func.func @embedding
// CHECK:         %[[N:.*]]:2 = graph.kernel "normalize_gather_gather_add_mul_add"
// CHECK:         %[[M:.*]] = graph.kernel "matmul_add"({{.*}}%[[N]]#{{.*}}%[[N]]#
// CHECK:         return %[[M]]
func.func @embedding(%ids: tensor<1x128xi64>, %types: tensor<1x128xi64>) -> tensor<1x128x64xf32> {
  %words = graph.weight "words" : tensor<1000x64xf32>
  %kinds = graph.weight "kinds" : tensor<2x64xf32>
  %g = graph.weight "g" : tensor<64xf32>
  %b = graph.weight "b" : tensor<64xf32>
  %w = graph.weight "w" : tensor<64x64xf32>
  %0 = graph.gather %words, %ids {axis = 0 : i64} : (tensor<1000x64xf32>, tensor<1x128xi64>) -> tensor<1x128x64xf32>
  %1 = graph.gather %kinds, %types {axis = 0 : i64} : (tensor<2x64xf32>, tensor<1x128xi64>) -> tensor<1x128x64xf32>
  %2 = graph.add %0, %1 : (tensor<1x128x64xf32>, tensor<1x128x64xf32>) -> tensor<1x128x64xf32>
  %3 = graph.normalize %2 {axes = array<i64: 2>, epsilon = 1.0e-5 : f64} : (tensor<1x128x64xf32>) -> tensor<1x128x64xf32>
  %4 = graph.mul %3, %g : (tensor<1x128x64xf32>, tensor<64xf32>) -> tensor<1x128x64xf32>
  %5 = graph.add %4, %b : (tensor<1x128x64xf32>, tensor<64xf32>) -> tensor<1x128x64xf32>
  %6 = graph.matmul %5, %w : (tensor<1x128x64xf32>, tensor<64x64xf32>) -> tensor<1x128x64xf32>
  %7 = graph.add %6, %2 : (tensor<1x128x64xf32>, tensor<1x128x64xf32>) -> tensor<1x128x64xf32>
  return %7 : tensor<1x128x64xf32>
}

// -----

// Columns of attention are one side of its tile: a residual add that sees them
// joined with the heads is a kernel of its own.
// CHECK-LABEL: func.func @joined_heads
// CHECK:         %[[A:.*]] = graph.kernel "attention"
// CHECK:         graph.kernel "add"
func.func @joined_heads(%q: tensor<1x4x16x8xf32>, %r: tensor<1x16x32xf32>) -> tensor<1x16x32xf32> {
  %a = graph.attention %q, %q, %q {scale = 0.125 : f64} : (tensor<1x4x16x8xf32>, tensor<1x4x16x8xf32>, tensor<1x4x16x8xf32>) -> tensor<1x4x16x8xf32>
  %t = graph.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x16x8xf32>) -> tensor<1x16x4x8xf32>
  %j = graph.reshape %t : (tensor<1x16x4x8xf32>) -> tensor<1x16x32xf32>
  %0 = graph.add %j, %r : (tensor<1x16x32xf32>, tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
  return %0 : tensor<1x16x32xf32>
}

// -----

// What the product goes into is the first result: tiles are chosen from there.
// CHECK-LABEL: func.func @product_first
// CHECK:         graph.kernel
// CHECK:           %[[G:.*]] = graph.gelu
// CHECK:           %[[A:.*]] = graph.attention
// CHECK:           %[[M:.*]] = graph.mul %[[G]], %[[A]]
// CHECK:           graph.yield %[[M]], %[[G]]
func.func @product_first(%q: tensor<1x1x16x8xf32>, %x: tensor<1x1x16x8xf32>) -> (tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>) {
  %g = graph.gelu %x : (tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  %a = graph.attention %q, %q, %q {scale = 0.125 : f64} : (tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  %m = graph.mul %g, %a : (tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>) -> tensor<1x1x16x8xf32>
  return %g, %m : tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>
}

// -----

// Heads: slices and splits are read by the attention itself, the permutation back
// is stored by it, and the reshapes are aliases.
// CHECK-LABEL: func.func @heads
// CHECK:         %[[QKV:.*]] = graph.kernel "matmul"
// CHECK:         %[[A:.*]] = graph.kernel "attention"(%[[QKV]])
// CHECK-SAME:      -> tensor<1x16x4x8xf32>
// CHECK:           graph.attention
// CHECK:           graph.transpose
// CHECK:         %[[F:.*]] = graph.reshape %[[A]]
// CHECK:         graph.kernel "matmul.1"(%[[F]]
func.func @heads(%x: tensor<1x16x32xf32>) -> tensor<1x16x32xf32> {
  %w = graph.weight "w" : tensor<32x96xf32>
  %o = graph.weight "o" : tensor<32x32xf32>
  %0 = graph.matmul %x, %w : (tensor<1x16x32xf32>, tensor<32x96xf32>) -> tensor<1x16x96xf32>
  %q0 = graph.slice %0 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<1x16x96xf32>) -> tensor<1x16x32xf32>
  %k0 = graph.slice %0 {starts = affine_map<() -> (0, 0, 32)>, steps = array<i64: 1, 1, 1>} : (tensor<1x16x96xf32>) -> tensor<1x16x32xf32>
  %v0 = graph.slice %0 {starts = affine_map<() -> (0, 0, 64)>, steps = array<i64: 1, 1, 1>} : (tensor<1x16x96xf32>) -> tensor<1x16x32xf32>
  %q1 = graph.reshape %q0 : (tensor<1x16x32xf32>) -> tensor<1x16x4x8xf32>
  %k1 = graph.reshape %k0 : (tensor<1x16x32xf32>) -> tensor<1x16x4x8xf32>
  %v1 = graph.reshape %v0 : (tensor<1x16x32xf32>) -> tensor<1x16x4x8xf32>
  %q = graph.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x16x4x8xf32>) -> tensor<1x4x16x8xf32>
  %k = graph.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x16x4x8xf32>) -> tensor<1x4x16x8xf32>
  %v = graph.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x16x4x8xf32>) -> tensor<1x4x16x8xf32>
  %a = graph.attention %q, %k, %v {scale = 0.125 : f64} : (tensor<1x4x16x8xf32>, tensor<1x4x16x8xf32>, tensor<1x4x16x8xf32>) -> tensor<1x4x16x8xf32>
  %t = graph.transpose %a {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x16x8xf32>) -> tensor<1x16x4x8xf32>
  %f = graph.reshape %t : (tensor<1x16x4x8xf32>) -> tensor<1x16x32xf32>
  %r = graph.matmul %f, %o : (tensor<1x16x32xf32>, tensor<32x32xf32>) -> tensor<1x16x32xf32>
  return %r : tensor<1x16x32xf32>
}

// -----

// The add may join neither matmul's kernel before the softmax between them is done:
// the first would wait for itself.
// CHECK-LABEL: func.func @cycle
// CHECK:         %[[A:.*]] = graph.kernel "matmul"
// CHECK:         %[[S:.*]] = graph.kernel "softmax"(%[[A]])
// CHECK:         graph.kernel "matmul_add"(%[[S]], %{{.*}}, %[[A]])
func.func @cycle(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = graph.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = graph.softmax %0 {axis = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = graph.matmul %1, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = graph.add %0, %2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// Results that are arguments, aliases or views: only the transpose costs a kernel,
// and the one behind a kernel costs none.
// CHECK-LABEL: func.func @results(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>)
// CHECK:         %[[T:.*]] = graph.kernel "transpose"(%[[X]])
// CHECK:         %[[R:.*]] = graph.kernel "softmax"(%[[X]])
// CHECK:           graph.transpose
// CHECK:         %[[V:.*]] = graph.reshape %[[X]]
// CHECK:         return %[[X]], %[[V]], %[[T]], %[[R]]
func.func @results(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<32xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = graph.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>
  %1 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = graph.softmax %x {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = graph.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %x, %0, %1, %3 : tensor<4x8xf32>, tensor<32xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// A convolution fetches its input once for each tap, so a transposed copy is made;
// a matmul takes its operand as it lies.
// CHECK-LABEL: func.func @strided
// CHECK:         graph.kernel "transpose"
// CHECK:         graph.kernel "conv"
// CHECK-NOT:       graph.transpose
// CHECK:         graph.kernel "matmul"
// CHECK:           graph.transpose
func.func @strided(%x: tensor<1x16x32x32xf32>, %y: tensor<32x16xf32>, %z: tensor<8x16xf32>) -> (tensor<1x32x32x8xf32>, tensor<32x8xf32>) {
  %w = graph.weight "w" : tensor<8x3x3x16xf32>
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x16x32x32xf32>) -> tensor<1x32x32x16xf32>
  %1 = graph.conv %0, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, channels_last} : (tensor<1x32x32x16xf32>, tensor<8x3x3x16xf32>) -> tensor<1x32x32x8xf32>
  %2 = graph.transpose %z {permutation = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %3 = graph.matmul %y, %2 : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
  return %1, %3 : tensor<1x32x32x8xf32>, tensor<32x8xf32>
}

// -----

// A cheap operator with several readers is computed by each; an expensive one by
// one of them, which stores it; none in front of a dot.
// CHECK-LABEL: func.func @readers
// CHECK:         graph.kernel "softmax"
// CHECK:           graph.neg
// CHECK:         graph.kernel "reduce"
// CHECK:           graph.neg
// CHECK:         %[[E:.*]]:2 = graph.kernel "reduce_exp"
// CHECK:         graph.kernel "softmax.1"(%[[E]]#0)
// CHECK:         %[[A:.*]] = graph.kernel "abs"
// CHECK:         graph.kernel "matmul"(%[[A]]
func.func @readers(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) {
  %0 = graph.neg %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = graph.softmax %0 {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = graph.reduce sum %0 {axes = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  %3 = graph.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = graph.softmax %3 {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = graph.reduce sum %3 {axes = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
  %6 = graph.abs %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %7 = graph.matmul %6, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1, %2, %4, %5, %7 : tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>
}

// -----

// A row value beside a value of full rows: the full one comes first, and is the one
// that is cut into tiles.
// CHECK-LABEL: func.func @row_result
// CHECK:         graph.kernel
// CHECK-SAME:      -> (tensor<7x33xf32>, tensor<7x1xf32>)
// CHECK-NOT:     graph.kernel
func.func @row_result(%x: tensor<7x33xf32>) -> (tensor<7x1xf32>, tensor<7x33xf32>) {
  %0 = graph.reduce max %x {axes = array<i64: 1>, keepdims} : (tensor<7x33xf32>) -> tensor<7x1xf32>
  %1 = graph.sub %x, %0 : (tensor<7x33xf32>, tensor<7x1xf32>) -> tensor<7x33xf32>
  return %0, %1 : tensor<7x1xf32>, tensor<7x33xf32>
}

// -----

// The coordinates of one result follow from those of the other through a permutation.
// CHECK-LABEL: func.func @permuted_result
// CHECK:         graph.kernel
// CHECK-NOT:     graph.kernel
func.func @permuted_result(%x: tensor<4x6xf32>, %y: tensor<6x4xf32>) -> (tensor<4x6xf32>, tensor<6x4xf32>) {
  %0 = graph.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %2 = graph.mul %1, %y : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  return %0, %2 : tensor<4x6xf32>, tensor<6x4xf32>
}

// -----

// Rows of attention that a reshape joins with the batch are no side of its tile any
// more; what follows is a kernel of its own.
// CHECK-LABEL: func.func @joined_rows
// CHECK:         graph.kernel "attention"
// CHECK:         graph.kernel "exp"
func.func @joined_rows(%x: tensor<2x1x16x8xf32>) -> tensor<32x8xf32> {
  %0 = graph.attention %x, %x, %x {scale = 1.0 : f64} : (tensor<2x1x16x8xf32>, tensor<2x1x16x8xf32>, tensor<2x1x16x8xf32>) -> tensor<2x1x16x8xf32>
  %1 = graph.reshape %0 : (tensor<2x1x16x8xf32>) -> tensor<32x8xf32>
  %2 = graph.exp %1 : (tensor<32x8xf32>) -> tensor<32x8xf32>
  return %2 : tensor<32x8xf32>
}

// -----

// Of two results that permuted views relate each is found from the other; they stay in
// the order in which they are computed.
// CHECK-LABEL: func.func @shuffled_result
// CHECK:         graph.kernel "max_sub"
// CHECK:           %[[M:.*]] = graph.max
// CHECK:           %[[S:.*]] = graph.sub
// CHECK:           graph.yield %[[M]], %[[S]]
// CHECK:         graph.kernel "matmul"
func.func @shuffled_result(%x: tensor<2x3x8xf32>, %y: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  %w = graph.weight "w" : tensor<8x8xf32>
  %0 = graph.max %x, %y : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %1 = graph.reshape %0 : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x3x4x2xf32>) -> tensor<2x3x2x4xf32>
  %3 = graph.reshape %2 : (tensor<2x3x2x4xf32>) -> tensor<2x3x8xf32>
  %4 = graph.sub %x, %3 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %5 = graph.matmul %3, %w : (tensor<2x3x8xf32>, tensor<8x8xf32>) -> tensor<2x3x8xf32>
  return %4, %5 : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}

// -----

// Rows that a reshape behind the normalization merges with others are stored as
// dimensions, under another shape of the same bytes.
// CHECK-LABEL: func.func @rows_in_a_dimension
// CHECK:         %[[K:.*]] = graph.kernel "normalize_mul"({{.*}}) : {{.*}} -> tensor<1x8x12x32x32xf32> {
// CHECK:         %[[R:.*]] = graph.reshape %[[K]] : (tensor<1x8x12x32x32xf32>) -> tensor<1x96x32x32xf32>
// CHECK:         return %[[R]]
func.func @rows_in_a_dimension(%x: tensor<1x8x12x32x32xf32>) -> tensor<1x96x32x32xf32> {
  %s = graph.weight "s" : tensor<96x1x1xf32>
  %0 = graph.normalize %x {axes = array<i64: 2, 3, 4>, epsilon = 1.0e-5 : f64} : (tensor<1x8x12x32x32xf32>) -> tensor<1x8x12x32x32xf32>
  %1 = graph.reshape %0 : (tensor<1x8x12x32x32xf32>) -> tensor<1x96x32x32xf32>
  %2 = graph.mul %1, %s : (tensor<1x96x32x32xf32>, tensor<96x1x1xf32>) -> tensor<1x96x32x32xf32>
  return %2 : tensor<1x96x32x32xf32>
}

// -----

// Where the bytes are others as well, the plan is cut: a tile of such a result has
// elements of many rows, and would compute all of each.
// CHECK-LABEL: func.func @rows_across_a_dimension
// CHECK:         graph.kernel "normalize"
// CHECK:         graph.kernel "mul"
func.func @rows_across_a_dimension(%x: tensor<1x8x12x32x32xf32>) -> tensor<1x32x32x96xf32> {
  %s = graph.weight "s" : tensor<96xf32>
  %0 = graph.normalize %x {axes = array<i64: 2, 3, 4>, epsilon = 1.0e-5 : f64} : (tensor<1x8x12x32x32xf32>) -> tensor<1x8x12x32x32xf32>
  %1 = graph.reshape %0 : (tensor<1x8x12x32x32xf32>) -> tensor<1x96x32x32xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x96x32x32xf32>) -> tensor<1x32x32x96xf32>
  %3 = graph.mul %2, %s : (tensor<1x32x32x96xf32>, tensor<96xf32>) -> tensor<1x32x32x96xf32>
  return %3 : tensor<1x32x32x96xf32>
}

// -----

// What is costly and read again and again through a broadcast is computed once, in front
// of a reduction too; what is cheap is not worth storing.
// CHECK-LABEL: func.func @broadcast_before_rows
// CHECK:         graph.kernel "exp"
// CHECK:         graph.kernel "reduce_mul"
func.func @broadcast_before_rows(%x: tensor<1x256xf32>, %y: tensor<4096x256xf32>) -> (tensor<4096xf32>, tensor<4096xf32>) {
  %0 = graph.exp %x : (tensor<1x256xf32>) -> tensor<1x256xf32>
  %1 = graph.broadcast %0 : (tensor<1x256xf32>) -> tensor<4096x256xf32>
  %2 = graph.reduce max %1 {axes = array<i64: 1>} : (tensor<4096x256xf32>) -> tensor<4096xf32>
  %3 = graph.mul %x, %x : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %4 = graph.broadcast %3 : (tensor<1x256xf32>) -> tensor<4096x256xf32>
  %5 = graph.reduce sum %4 {axes = array<i64: 1>} : (tensor<4096x256xf32>) -> tensor<4096xf32>
  return %2, %5 : tensor<4096xf32>, tensor<4096xf32>
}

// A product has tiles of rows by columns: behind it a dimension that is part row and
// part column, as the interleaved phases of a transposed convolution are, begins a kernel.
// CHECK-LABEL: func.func @interleaved
// CHECK:         graph.kernel "conv"
// CHECK:         graph.kernel "{{max.*}}"
// CHECK:           graph.transpose
// CHECK:         return
func.func @interleaved(%x: tensor<1x8x8x64xf32>, %w: tensor<32x1x1x64xf32>) -> tensor<1x8x16x16xf32> {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, channels_last} : (tensor<1x8x8x64xf32>, tensor<32x1x1x64xf32>) -> tensor<1x8x8x32xf32>
  %1 = graph.reshape %0 : (tensor<1x8x8x32xf32>) -> tensor<1x8x8x2x2x8xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 5, 1, 3, 2, 4>} : (tensor<1x8x8x2x2x8xf32>) -> tensor<1x8x8x2x8x2xf32>
  %3 = graph.reshape %2 : (tensor<1x8x8x2x8x2xf32>) -> tensor<1x8x16x16xf32>
  %4 = graph.max %3, %zero : (tensor<1x8x16x16xf32>, tensor<f32>) -> tensor<1x8x16x16xf32>
  return %4 : tensor<1x8x16x16xf32>
}

// ... or, of several products, part of one and part of another.
// CHECK-LABEL: func.func @merged_heads
// CHECK:         graph.kernel "matmul"
// CHECK:           graph.transpose
// CHECK:         graph.kernel "max"
// CHECK:         graph.kernel "matmul.1"
// CHECK:         graph.kernel "max.1"
// CHECK:         return
func.func @merged_heads(%x: tensor<12x100x256xf32>, %w: tensor<12x256x40xf32>) -> (tensor<100x480xf32>, tensor<1200x40xf32>) {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.matmul %x, %w : (tensor<12x100x256xf32>, tensor<12x256x40xf32>) -> tensor<12x100x40xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<12x100x40xf32>) -> tensor<100x12x40xf32>
  %2 = graph.reshape %1 : (tensor<100x12x40xf32>) -> tensor<100x480xf32>
  %3 = graph.max %2, %zero : (tensor<100x480xf32>, tensor<f32>) -> tensor<100x480xf32>
  %4 = graph.matmul %x, %w : (tensor<12x100x256xf32>, tensor<12x256x40xf32>) -> tensor<12x100x40xf32>
  %5 = graph.reshape %4 : (tensor<12x100x40xf32>) -> tensor<1200x40xf32>
  %6 = graph.max %5, %zero : (tensor<1200x40xf32>, tensor<f32>) -> tensor<1200x40xf32>
  return %3, %6 : tensor<100x480xf32>, tensor<1200x40xf32>
}

// -----

// Rows may have no elements: nothing would be computed of them beside their elements.
#rest = affine_map<()[s0] -> (4, s0 - 1)>
#more = affine_map<()[s0] -> (4, s0 + 1)>
module attributes {graph.symbols = [{name = "n", min = 1, opt = 64, max = 128, divisor = 1}]} {
  // CHECK-LABEL: func.func @rows_without_elements
  // CHECK:         graph.kernel "{{.*}}"{{.*}} -> tensor<4x?xf32
  // CHECK:         graph.kernel "reduce"{{.*}} -> tensor<4xf32>
  // CHECK:         return
  func.func @rows_without_elements(%x: tensor<4x?xf32, #rest>) -> (tensor<4x?xf32, #rest>, tensor<4xf32>) {
    %0 = graph.exp %x : (tensor<4x?xf32, #rest>) -> tensor<4x?xf32, #rest>
    %1 = graph.reduce max %0 {axes = array<i64: 1>} : (tensor<4x?xf32, #rest>) -> tensor<4xf32>
    return %0, %1 : tensor<4x?xf32, #rest>, tensor<4xf32>
  }

  // CHECK-LABEL: func.func @rows_with_elements
  // CHECK:         graph.kernel "reduce_exp"{{.*}} -> (tensor<4x?xf32, #{{.*}}>, tensor<4xf32>)
  // CHECK-NOT:     graph.kernel
  // CHECK:         return
  func.func @rows_with_elements(%x: tensor<4x?xf32, #more>) -> (tensor<4x?xf32, #more>, tensor<4xf32>) {
    %0 = graph.exp %x : (tensor<4x?xf32, #more>) -> tensor<4x?xf32, #more>
    %1 = graph.reduce max %0 {axes = array<i64: 1>} : (tensor<4x?xf32, #more>) -> tensor<4xf32>
    return %0, %1 : tensor<4x?xf32, #more>, tensor<4xf32>
  }
}

// -----

// A product whose tiles would be stored element by element is stored as it is: what lies between columns is laid aside by another kernel.
// CHECK-LABEL: func.func @scattered
// CHECK:         graph.kernel "conv"
// CHECK-NOT:       graph.transpose
// CHECK:         graph.kernel "transpose"
// CHECK:         return
func.func @scattered(%x: tensor<1x8x8x64xf32>, %w: tensor<32x1x1x64xf32>) -> tensor<1x8x8x2x8x2xf32> {
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, channels_last} : (tensor<1x8x8x64xf32>, tensor<32x1x1x64xf32>) -> tensor<1x8x8x32xf32>
  %1 = graph.reshape %0 : (tensor<1x8x8x32xf32>) -> tensor<1x8x8x2x2x8xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 5, 1, 3, 2, 4>} : (tensor<1x8x8x2x2x8xf32>) -> tensor<1x8x8x2x8x2xf32>
  return %2 : tensor<1x8x8x2x8x2xf32>
}

// Rows of the result that are rows or columns of the product are not.
// CHECK-LABEL: func.func @side_by_side
// CHECK:         graph.kernel "conv"
// CHECK:           graph.transpose
// CHECK-NOT:     graph.kernel
// CHECK:         return
func.func @side_by_side(%x: tensor<1x8x8x64xf32>, %w: tensor<32x1x1x64xf32>) -> tensor<1x32x8x8xf32> {
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, channels_last} : (tensor<1x8x8x64xf32>, tensor<32x1x1x64xf32>) -> tensor<1x8x8x32xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x8x8x32xf32>) -> tensor<1x32x8x8xf32>
  return %1 : tensor<1x32x8x8xf32>
}

// Windows overlap: what they slide over is stored so that its innermost dimension stays.
// CHECK-LABEL: func.func @pooled
// CHECK:         graph.kernel "transpose"
// CHECK:         graph.kernel "pool"
// CHECK-NOT:       graph.transpose
// CHECK:         return
func.func @pooled(%x: tensor<1x64x20x20xf32>) -> tensor<1x18x18x64xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x64x20x20xf32>) -> tensor<1x20x20x64xf32>
  %1 = graph.pool max %0 {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, channels_last} : (tensor<1x20x20x64xf32>) -> tensor<1x18x18x64xf32>
  return %1 : tensor<1x18x18x64xf32>
}

// Where the result is stored as the input lies, tiles run along both.
// CHECK-LABEL: func.func @pooled_in_place
// CHECK:         graph.kernel "pool"
// CHECK:           graph.transpose
// CHECK:           graph.transpose
// CHECK-NOT:     graph.kernel
// CHECK:         return
func.func @pooled_in_place(%x: tensor<1x64x20x20xf32>) -> tensor<1x64x18x18xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x64x20x20xf32>) -> tensor<1x20x20x64xf32>
  %1 = graph.pool max %0 {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, channels_last} : (tensor<1x20x20x64xf32>) -> tensor<1x18x18x64xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x18x18x64xf32>) -> tensor<1x64x18x18xf32>
  return %2 : tensor<1x64x18x18xf32>
}

// -----

// Two reductions of one value over the same rows are one kernel; others are not.
// CHECK-LABEL: func.func @siblings
// CHECK:         %[[BOTH:.*]]:2 = graph.kernel
// CHECK:         graph.kernel "reduce
// CHECK-NOT:     graph.kernel
// CHECK:         return %[[BOTH]]#0, %[[BOTH]]#1
func.func @siblings(%x: tensor<64x300xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<300xf32>) {
  %0 = graph.reduce min %x {axes = array<i64: 1>} : (tensor<64x300xf32>) -> tensor<64xf32>
  %1 = graph.reduce max %x {axes = array<i64: 1>} : (tensor<64x300xf32>) -> tensor<64xf32>
  %2 = graph.reduce max %x {axes = array<i64: 0>} : (tensor<64x300xf32>) -> tensor<300xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<300xf32>
}

// -----

// What has an order writes its own result, and no view behind it.
// CHECK-LABEL: func.func @in_order
// CHECK:         graph.kernel "scan"
// CHECK-NOT:       graph.transpose
// CHECK:         graph.kernel
// CHECK:         return
func.func @in_order(%x: tensor<5x24x32xf32>, %i: tensor<4xi64>) -> tensor<4x5x32xf32> {
  %0 = graph.scan sum %x {axis = 2} : (tensor<5x24x32xf32>) -> tensor<5x24x32xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<5x24x32xf32>) -> tensor<24x5x32xf32>
  %2 = graph.gather %1, %i {axis = 0} : (tensor<24x5x32xf32>, tensor<4xi64>) -> tensor<4x5x32xf32>
  return %2 : tensor<4x5x32xf32>
}

// -----

// What is stored anyway is not stored in a longer type too, for a sum that may as well
// convert what it reads.
// CHECK-LABEL: func.func @longer_for_a_sum
// CHECK:         %[[M:.*]] = graph.kernel "matmul_gelu"(%{{.*}}) : {{.*}} -> tensor<64x32xf16> {
// CHECK:         graph.kernel "reduce_cast"(%[[M]])
// CHECK:         graph.kernel "matmul"(%[[M]]
func.func @longer_for_a_sum(%x: tensor<64x64xf16>) -> (tensor<32xf32>, tensor<64x16xf16>) {
  %w = graph.weight "w" : tensor<64x32xf16>
  %v = graph.weight "v" : tensor<32x16xf16>
  %0 = graph.matmul %x, %w : (tensor<64x64xf16>, tensor<64x32xf16>) -> tensor<64x32xf16>
  %1 = graph.gelu %0 : (tensor<64x32xf16>) -> tensor<64x32xf16>
  %2 = graph.cast %1 {to = f32} : (tensor<64x32xf16>) -> tensor<64x32xf32>
  %3 = graph.reduce sum %2 {axes = array<i64: 0>} : (tensor<64x32xf32>) -> tensor<32xf32>
  %4 = graph.matmul %1, %v : (tensor<64x32xf16>, tensor<32x16xf16>) -> tensor<64x16xf16>
  return %3, %4 : tensor<32xf32>, tensor<64x16xf16>
}

// -----

// For an operator behind a norm, too: its kernel reads what the product's stores anyway.
// CHECK-LABEL: func.func @longer_for_others
// CHECK:         %[[M:.*]]:2 = graph.kernel "matmul_abs"{{.*}} -> (tensor<64x32xf16>, tensor<64x32xf16>)
// CHECK:         graph.kernel "reduce_{{.*}}"(%[[M]]#{{[01]}}, %[[M]]#{{[01]}})
// CHECK:           graph.div
func.func @longer_for_others(%x: tensor<64x16xf16>, %w: tensor<16x32xf16>) -> tensor<64x32xf32> {
  %0 = graph.matmul %x, %w : (tensor<64x16xf16>, tensor<16x32xf16>) -> tensor<64x32xf16>
  %1 = graph.abs %0 : (tensor<64x32xf16>) -> tensor<64x32xf16>
  %2 = graph.cast %1 {to = f32} : (tensor<64x32xf16>) -> tensor<64x32xf32>
  %3 = graph.cast %0 {to = f32} : (tensor<64x32xf16>) -> tensor<64x32xf32>
  %4 = graph.reduce sum %2 {axes = array<i64: 1>, keepdims} : (tensor<64x32xf32>) -> tensor<64x1xf32>
  %5 = graph.div %3, %4 : (tensor<64x32xf32>, tensor<64x1xf32>) -> tensor<64x32xf32>
  return %5 : tensor<64x32xf32>
}

// -----

// The squares of a norm are for its sum where what they are of is stored beside them.
// CHECK-LABEL: func.func @squares_of_a_norm
// CHECK:         %[[M:.*]] = graph.kernel "matmul"{{.*}} -> tensor<64x32xf16>
// CHECK:         graph.kernel "reduce_{{.*}}"(%[[M]])
// CHECK:           graph.mul
// CHECK:           graph.reduce
// CHECK:           graph.div
func.func @squares_of_a_norm(%x: tensor<64x16xf16>, %w: tensor<16x32xf16>) -> tensor<64x32xf32> {
  %0 = graph.matmul %x, %w : (tensor<64x16xf16>, tensor<16x32xf16>) -> tensor<64x32xf16>
  %1 = graph.cast %0 {to = f32} : (tensor<64x32xf16>) -> tensor<64x32xf32>
  %2 = graph.mul %1, %1 : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %3 = graph.reduce sum %2 {axes = array<i64: 1>, keepdims} : (tensor<64x32xf32>) -> tensor<64x1xf32>
  %4 = graph.div %1, %3 : (tensor<64x32xf32>, tensor<64x1xf32>) -> tensor<64x32xf32>
  return %4 : tensor<64x32xf32>
}

// -----

// Not where nothing else stores it shorter and a sum may cancel it: what is left
// of the rows is as exact as the product.
// CHECK-LABEL: func.func @longer_for_a_sum_and_others
// CHECK:         %[[M:.*]] = graph.kernel "matmul_cast"{{.*}} -> tensor<64x32xf32>
// CHECK:         graph.kernel "reduce_div"(%[[M]])
func.func @longer_for_a_sum_and_others(%x: tensor<64x16xf16>, %w: tensor<16x32xf16>) -> tensor<64x32xf32> {
  %0 = graph.matmul %x, %w : (tensor<64x16xf16>, tensor<16x32xf16>) -> tensor<64x32xf16>
  %1 = graph.cast %0 {to = f32} : (tensor<64x32xf16>) -> tensor<64x32xf32>
  %2 = graph.reduce sum %1 {axes = array<i64: 1>, keepdims} : (tensor<64x32xf32>) -> tensor<64x1xf32>
  %3 = graph.div %1, %2 : (tensor<64x32xf32>, tensor<64x1xf32>) -> tensor<64x32xf32>
  return %3 : tensor<64x32xf32>
}

// -----

// What was decided is noted, once for what is alike: kernel, reader (none: its own),
// values, bytes, and why it stays apart.
// CHECK-LABEL: func.func @notes
// CHECK-SAME:    graph.fusion = ["matmul_gelu\09\091\094096\09",
// CHECK-SAME:      "matmul_gelu\09matmul\091\094096\09products copy their operands from memory"]
func.func @notes(%x: tensor<32x32xf16>) -> tensor<32x16xf16> {
  %w = graph.weight "w" : tensor<32x32xf16>
  %v = graph.weight "v" : tensor<32x16xf16>
  %0 = graph.matmul %x, %w : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x32xf16>
  %1 = graph.gelu %0 : (tensor<32x32xf16>) -> tensor<32x32xf16>
  %2 = graph.matmul %1, %v : (tensor<32x32xf16>, tensor<32x16xf16>) -> tensor<32x16xf16>
  return %2 : tensor<32x16xf16>
}
