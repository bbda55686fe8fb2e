// RUN: charonia-opt %s --form-kernels=dense-rows --split-input-file | FileCheck %s
// RUN: charonia-opt %s --form-kernels --split-input-file | FileCheck %s --check-prefix=SPARSE
// A product of many rows wants its columns side by side: on a CPU they are stored so, once.
// CHECK-LABEL: @rows
// CHECK: graph.kernel "transpose"
// CHECK: graph.kernel "matmul"
// SPARSE-LABEL: @rows
// SPARSE-NOT: graph.kernel "transpose"
func.func @rows(%x: tensor<8x192x64xf32>, %y: tensor<8x192x64xf32>) -> tensor<8x192x192xf32> {
  %0 = graph.transpose %y {permutation = array<i64: 0, 2, 1>} : (tensor<8x192x64xf32>) -> tensor<8x64x192xf32>
  %1 = graph.matmul %x, %0 : (tensor<8x192x64xf32>, tensor<8x64x192xf32>) -> tensor<8x192x192xf32>
  return %1 : tensor<8x192x192xf32>
}

// -----

// Few rows read them once or twice as they lie.
// CHECK-LABEL: @few_rows
// CHECK-NOT: graph.kernel "transpose"
func.func @few_rows(%x: tensor<8x16x64xf32>, %y: tensor<8x192x64xf32>) -> tensor<8x16x192xf32> {
  %0 = graph.transpose %y {permutation = array<i64: 0, 2, 1>} : (tensor<8x192x64xf32>) -> tensor<8x64x192xf32>
  %1 = graph.matmul %x, %0 : (tensor<8x16x64xf32>, tensor<8x64x192xf32>) -> tensor<8x16x192xf32>
  return %1 : tensor<8x16x192xf32>
}

// -----

// Rows that data choose more than once are stored side by side, on a GPU too; what is computed
// of them is stored as rows, and taken apart by a kernel of its own.
// CHECK-LABEL: @chosen
// CHECK: graph.kernel "transpose"
// CHECK: graph.kernel "gather_nd_gather_nd_add"
// CHECK-NOT: graph.transpose
// CHECK: graph.yield {{.*}} : tensor<1x96x32xf32>
// CHECK: graph.kernel "transpose.1"
// SPARSE-LABEL: @chosen
// SPARSE: graph.kernel "transpose"
// SPARSE: graph.kernel "gather_nd_gather_nd_add"
func.func @chosen(%x: tensor<1x32x96xf32>, %i: tensor<1x96x1xi64>, %j: tensor<1x96x1xi64>) -> tensor<1x32x96xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<1x32x96xf32>) -> tensor<1x96x32xf32>
  %1 = graph.gather_nd %0, %i {batch_dims = 1} : (tensor<1x96x32xf32>, tensor<1x96x1xi64>) -> tensor<1x96x32xf32>
  %2 = graph.gather_nd %0, %j {batch_dims = 1} : (tensor<1x96x32xf32>, tensor<1x96x1xi64>) -> tensor<1x96x32xf32>
  %3 = graph.add %1, %2 : (tensor<1x96x32xf32>, tensor<1x96x32xf32>) -> tensor<1x96x32xf32>
  %4 = graph.transpose %3 {permutation = array<i64: 0, 2, 1>} : (tensor<1x96x32xf32>) -> tensor<1x32x96xf32>
  return %4 : tensor<1x32x96xf32>
}

// -----

// So are sums of some of them, as samples of a region are.
// CHECK-LABEL: @summed
// CHECK: graph.kernel "transpose"
// CHECK: graph.kernel "reduce_gather_nd"
// CHECK: graph.yield {{.*}} : tensor<96x32xf32>
// CHECK: graph.kernel "transpose.1"
func.func @summed(%x: tensor<32x96xf32>, %i: tensor<96x4x1xi64>) -> tensor<32x96xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<32x96xf32>) -> tensor<96x32xf32>
  %1 = graph.gather_nd %0, %i {batch_dims = 0} : (tensor<96x32xf32>, tensor<96x4x1xi64>) -> tensor<96x4x32xf32>
  %2 = graph.reduce sum %1 {axes = array<i64: 1>} : (tensor<96x4x32xf32>) -> tensor<96x32xf32>
  %3 = graph.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<96x32xf32>) -> tensor<32x96xf32>
  return %3 : tensor<32x96xf32>
}

// -----

// What counts is what is chosen in the end: of the images of some regions half of all rows, then one in sixteen.
// CHECK-LABEL: @chosen_again
// CHECK: graph.kernel "transpose"
// CHECK: graph.kernel "gather_gather_nd"
func.func @chosen_again(%x: tensor<2x32x96xf32>, %b: tensor<4xi64>, %i: tensor<4x24x1xi64>) -> tensor<4x24x32xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<2x32x96xf32>) -> tensor<2x96x32xf32>
  %1 = graph.gather %0, %b {axis = 0 : i64} : (tensor<2x96x32xf32>, tensor<4xi64>) -> tensor<4x96x32xf32>
  %2 = graph.gather_nd %1, %i {batch_dims = 1} : (tensor<4x96x32xf32>, tensor<4x24x1xi64>) -> tensor<4x24x32xf32>
  return %2 : tensor<4x24x32xf32>
}

// -----

// CHECK-LABEL: @chosen_seldom
// CHECK-COUNT-1: graph.kernel
// CHECK-NOT: graph.kernel
// CHECK: return
func.func @chosen_seldom(%x: tensor<2x32x96xf32>, %b: tensor<4xi64>, %i: tensor<4x3x1xi64>) -> tensor<4x3x32xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<2x32x96xf32>) -> tensor<2x96x32xf32>
  %1 = graph.gather %0, %b {axis = 0 : i64} : (tensor<2x96x32xf32>, tensor<4xi64>) -> tensor<4x96x32xf32>
  %2 = graph.gather_nd %1, %i {batch_dims = 1} : (tensor<4x96x32xf32>, tensor<4x3x1xi64>) -> tensor<4x3x32xf32>
  return %2 : tensor<4x3x32xf32>
}

// -----

// A row of several dimensions is walked as one run: what is cut out of such a run is stored
// first, with what is computed of it in between.
// CHECK-LABEL: @cut_run
// CHECK: graph.kernel "slice_exp"
// CHECK: graph.kernel "normalize"
// CHECK-NOT: graph.slice
// CHECK: return
// SPARSE-LABEL: @cut_run
// SPARSE-NOT: graph.kernel "slice_exp"
func.func @cut_run(%x: tensor<1x32x64x64xf32>) -> tensor<1x32x62x61xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 1, 3)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x32x64x64xf32>) -> tensor<1x32x62x61xf32>
  %1 = graph.exp %0 : (tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %2 = graph.normalize %1 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  return %2 : tensor<1x32x62x61xf32>
}

// -----

// Whole channels, and whole rows of an image, are runs of memory still.
// CHECK-LABEL: @whole_run
// CHECK-NOT: graph.kernel "slice"
// CHECK: return
func.func @whole_run(%x: tensor<1x36x64x64xf32>) -> tensor<1x32x62x64xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 2, 1, 0)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x36x64x64xf32>) -> tensor<1x32x62x64xf32>
  %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x62x64xf32>) -> tensor<1x32x62x64xf32>
  return %1 : tensor<1x32x62x64xf32>
}

// -----

// Each value is looked at once, not as often as it is read: what doubles itself forty times.
// The cut is stored with what is made of it, which stays one kernel.
// CHECK-LABEL: @doubled
// CHECK: graph.kernel "slice_mul_mul
// CHECK-NOT: graph.kernel
// CHECK: graph.kernel "normalize"
// CHECK-NOT: graph.slice
// CHECK: return
func.func @doubled(%x: tensor<1x32x64x64xf32>) -> tensor<1x32x62x61xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 1, 3)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x32x64x64xf32>) -> tensor<1x32x62x61xf32>
  %1 = graph.mul %0, %0 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %2 = graph.mul %1, %1 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %3 = graph.mul %2, %2 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %4 = graph.mul %3, %3 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %5 = graph.mul %4, %4 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %6 = graph.mul %5, %5 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %7 = graph.mul %6, %6 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %8 = graph.mul %7, %7 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %9 = graph.mul %8, %8 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %10 = graph.mul %9, %9 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %11 = graph.mul %10, %10 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %12 = graph.mul %11, %11 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %13 = graph.mul %12, %12 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %14 = graph.mul %13, %13 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %15 = graph.mul %14, %14 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %16 = graph.mul %15, %15 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %17 = graph.mul %16, %16 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %18 = graph.mul %17, %17 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %19 = graph.mul %18, %18 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %20 = graph.mul %19, %19 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %21 = graph.mul %20, %20 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %22 = graph.mul %21, %21 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %23 = graph.mul %22, %22 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %24 = graph.mul %23, %23 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %25 = graph.mul %24, %24 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %26 = graph.mul %25, %25 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %27 = graph.mul %26, %26 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %28 = graph.mul %27, %27 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %29 = graph.mul %28, %28 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %30 = graph.mul %29, %29 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %31 = graph.mul %30, %30 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %32 = graph.mul %31, %31 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %33 = graph.mul %32, %32 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %34 = graph.mul %33, %33 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %35 = graph.mul %34, %34 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %36 = graph.mul %35, %35 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %37 = graph.mul %36, %36 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %38 = graph.mul %37, %37 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %39 = graph.mul %38, %38 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %40 = graph.mul %39, %39 : (tensor<1x32x62x61xf32>, tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  %41 = graph.normalize %40 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x62x61xf32>) -> tensor<1x32x62x61xf32>
  return %41 : tensor<1x32x62x61xf32>
}

// -----

// Windows overlap, so what they slide over is stored as it lies, also where a view that moves nothing hides the one that does.
// CHECK-LABEL: @window_behind_alias
// CHECK: graph.kernel "transpose"
// CHECK: graph.kernel "conv"
// SPARSE-LABEL: @window_behind_alias
// SPARSE: graph.kernel "transpose"
func.func @window_behind_alias(%x: tensor<1x4x4x32x16xf32>, %w: tensor<13x5x5x1xf32>) -> tensor<1x124x60x13xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 4, 2>} : (tensor<1x4x4x32x16xf32>) -> tensor<1x32x4x16x4xf32>
  %1 = graph.reshape %0 : (tensor<1x32x4x16x4xf32>) -> tensor<1x128x64x1xf32>
  %2 = graph.conv %1, %w {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x128x64x1xf32>, tensor<13x5x5x1xf32>) -> tensor<1x124x60x13xf32>
  return %2 : tensor<1x124x60x13xf32>
}

// -----

// A tile of what is joined reads each part under a mask: what lies apart in memory is stored side by side before.
// CHECK-LABEL: @joined
// CHECK: graph.kernel "transpose"
// CHECK: graph.kernel "concat"
// SPARSE-LABEL: @joined
// SPARSE-NOT: graph.kernel "transpose"
func.func @joined(%x: tensor<2x3x3x64x64xf32>, %y: tensor<2x192x192xf32>) -> tensor<2x192x576xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 4, 2>} : (tensor<2x3x3x64x64xf32>) -> tensor<2x64x3x64x3xf32>
  %1 = graph.reshape %0 : (tensor<2x64x3x64x3xf32>) -> tensor<2x192x192xf32>
  %2 = graph.concat %1, %y, %1 {axis = 2 : i64} : (tensor<2x192x192xf32>, tensor<2x192x192xf32>, tensor<2x192x192xf32>) -> tensor<2x192x576xf32>
  return %2 : tensor<2x192x576xf32>
}

// -----

// Parts of single elements interleave: each is read where it lies.
// CHECK-LABEL: @interleaved
// CHECK-NOT: graph.kernel "transpose"
func.func @interleaved(%x: tensor<2x64x192x1xf32>, %y: tensor<2x192x64x1xf32>) -> tensor<2x192x64x2xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x64x192x1xf32>) -> tensor<2x192x64x1xf32>
  %1 = graph.concat %0, %y {axis = 3 : i64} : (tensor<2x192x64x1xf32>, tensor<2x192x64x1xf32>) -> tensor<2x192x64x2xf32>
  return %1 : tensor<2x192x64x2xf32>
}

// -----

// Pieces of whole vectors are read as they lie.
// CHECK-LABEL: @whole_vectors
// CHECK-NOT: graph.kernel "slice"
// CHECK: return
func.func @whole_vectors(%x: tensor<1x32x64x64xf32>) -> tensor<1x32x62x48xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 1, 3)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x32x64x64xf32>) -> tensor<1x32x62x48xf32>
  %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x62x48xf32>) -> tensor<1x32x62x48xf32>
  return %1 : tensor<1x32x62x48xf32>
}

// -----

// Registers hold a short row, which is walked once.
// CHECK-LABEL: @short_row
// CHECK-NOT: graph.kernel "slice"
// CHECK: return
func.func @short_row(%x: tensor<2048x2x64xf32>) -> tensor<2048x2x63xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 1)>, steps = array<i64: 1, 1, 1>} : (tensor<2048x2x64xf32>) -> tensor<2048x2x63xf32>
  %1 = graph.normalize %0 {axes = array<i64: 1, 2>, epsilon = 1.0e-5 : f64} : (tensor<2048x2x63xf32>) -> tensor<2048x2x63xf32>
  return %1 : tensor<2048x2x63xf32>
}

// -----

// Every second element of whole rows: places are no further divided.
// CHECK-LABEL: @every_second
// CHECK-NOT: graph.kernel "slice"
// CHECK: return
func.func @every_second(%x: tensor<1x32x61x122xf32>) -> tensor<1x32x61x61xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 2>} : (tensor<1x32x61x122xf32>) -> tensor<1x32x61x61xf32>
  %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x61x61xf32>) -> tensor<1x32x61x61xf32>
  return %1 : tensor<1x32x61x61xf32>
}

// -----

// One of eight between them: neighbours of the run are apart in what it is cut out of.
// CHECK-LABEL: @one_inside
// CHECK: graph.kernel "slice"
// CHECK: graph.kernel "normalize"
func.func @one_inside(%x: tensor<32x32x8x61xf32>) -> tensor<32x32x1x61xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 3, 0)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<32x32x8x61xf32>) -> tensor<32x32x1x61xf32>
  %1 = graph.normalize %0 {axes = array<i64: 1, 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<32x32x1x61xf32>) -> tensor<32x32x1x61xf32>
  return %1 : tensor<32x32x1x61xf32>
}

// -----

// A row whose dimensions are no neighbours is no run, cut or not.
// CHECK-LABEL: @apart
// CHECK-NOT: graph.kernel "slice"
// CHECK: return
func.func @apart(%x: tensor<8x32x8x64xf32>) -> tensor<8x32x8x61xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0, 1)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<8x32x8x64xf32>) -> tensor<8x32x8x61xf32>
  %1 = graph.normalize %0 {axes = array<i64: 1, 3>, epsilon = 1.0e-5 : f64} : (tensor<8x32x8x61xf32>) -> tensor<8x32x8x61xf32>
  return %1 : tensor<8x32x8x61xf32>
}

// -----

// Rows of whole vectors that repeat one element are read as they lie; others are stored, also
// where a pointwise operator spreads them.
// CHECK-LABEL: @spread
// CHECK-NOT: graph.kernel "broadcast"
// CHECK: return
func.func @spread(%x: tensor<1x32x64x1xf32>) -> tensor<1x32x64x64xf32> {
  %0 = graph.broadcast %x : (tensor<1x32x64x1xf32>) -> tensor<1x32x64x64xf32>
  %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x64x64xf32>) -> tensor<1x32x64x64xf32>
  return %1 : tensor<1x32x64x64xf32>
}

// -----

// CHECK-LABEL: @spread_by_mul
// CHECK: graph.kernel "mul"
// CHECK: graph.kernel "normalize"
func.func @spread_by_mul(%x: tensor<1x32x64x61xf32>, %y: tensor<1x32x64x1xf32>) -> tensor<1x32x64x61xf32> {
  %0 = graph.mul %x, %y : (tensor<1x32x64x61xf32>, tensor<1x32x64x1xf32>) -> tensor<1x32x64x61xf32>
  %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x64x61xf32>) -> tensor<1x32x64x61xf32>
  return %1 : tensor<1x32x64x61xf32>
}

// -----

// Of a factor for each row there is one element.
// CHECK-LABEL: @factor_of_rows
// CHECK-NOT: graph.kernel "mul"
// CHECK: return
func.func @factor_of_rows(%x: tensor<1x32x64x61xf32>, %y: tensor<1x32x1x1xf32>) -> tensor<1x32x64x61xf32> {
  %0 = graph.mul %x, %y : (tensor<1x32x64x61xf32>, tensor<1x32x1x1xf32>) -> tensor<1x32x64x61xf32>
  %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x64x61xf32>) -> tensor<1x32x64x61xf32>
  return %1 : tensor<1x32x64x61xf32>
}

// -----

// Of several cuts what is made of them is stored, once.
// CHECK-LABEL: @two_cuts
// CHECK-NOT: graph.kernel "slice
// CHECK: graph.kernel "sub"
// CHECK: graph.kernel "normalize"
func.func @two_cuts(%x: tensor<2x32x64x64xf32>) -> tensor<2x32x64x61xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0, 3)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<2x32x64x64xf32>) -> tensor<2x32x64x61xf32>
  %1 = graph.slice %x {starts = affine_map<() -> (0, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<2x32x64x64xf32>) -> tensor<2x32x64x61xf32>
  %2 = graph.sub %0, %1 : (tensor<2x32x64x61xf32>, tensor<2x32x64x61xf32>) -> tensor<2x32x64x61xf32>
  %3 = graph.normalize %2 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<2x32x64x61xf32>) -> tensor<2x32x64x61xf32>
  return %3 : tensor<2x32x64x61xf32>
}

// -----

// The same bytes in another shape, as groups of channels have: the row is some channels' run.
// CHECK-LABEL: @groups
// CHECK: graph.kernel "slice"
// CHECK: graph.kernel "normalize"
// CHECK-NOT: graph.slice
// CHECK: return
func.func @groups(%x: tensor<1x32x64x64xf32>) -> tensor<1x8x14640xf32> {
  %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 1, 3)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x32x64x64xf32>) -> tensor<1x32x60x61xf32>
  %1 = graph.reshape %0 : (tensor<1x32x60x61xf32>) -> tensor<1x8x14640xf32>
  %2 = graph.normalize %1 {axes = array<i64: 2>, epsilon = 1.0e-5 : f64} : (tensor<1x8x14640xf32>) -> tensor<1x8x14640xf32>
  return %2 : tensor<1x8x14640xf32>
}

// -----

// Zeros around an image: its rows lie apart.
// CHECK-LABEL: @padded
// CHECK: graph.kernel "pad"
// CHECK: graph.kernel "normalize"
func.func @padded(%x: tensor<1x32x64x64xf32>) -> tensor<1x32x66x66xf32> {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.pad constant %x, %zero {lows = affine_map<() -> (0, 0, 1, 1)>} : (tensor<1x32x64x64xf32>, tensor<f32>) -> tensor<1x32x66x66xf32>
  %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x66x66xf32>) -> tensor<1x32x66x66xf32>
  return %1 : tensor<1x32x66x66xf32>
}

// -----

// Whole rows of zeros above and below leave one run.
// CHECK-LABEL: @padded_outside
// CHECK-NOT: graph.kernel "pad"
// CHECK: graph.kernel "normalize_pad"
// CHECK: return
func.func @padded_outside(%x: tensor<1x32x64x61xf32>) -> tensor<1x32x66x61xf32> {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %0 = graph.pad constant %x, %zero {lows = affine_map<() -> (0, 0, 1, 0)>} : (tensor<1x32x64x61xf32>, tensor<f32>) -> tensor<1x32x66x61xf32>
  %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x66x61xf32>) -> tensor<1x32x66x61xf32>
  return %1 : tensor<1x32x66x61xf32>
}

// -----

// Open sizes are judged at their optimum; a width of whole vectors has to be known.
// CHECK-LABEL: @open_width
// CHECK: graph.kernel "slice"
// CHECK: graph.kernel "normalize"
module attributes {graph.symbols = [{name = "h", min = 4, opt = 64, max = 512, divisor = 1}, {name = "w", min = 4, opt = 64, max = 512, divisor = 1}]} {
  func.func @open_width(%x: tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>> {
    %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0, 3)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>>
    %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>>
    return %1 : tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>>
  }
}

// -----

// A reduction whose rows join what is cut, as normalizations of groups are written out: the pieces are stored side by side.
// CHECK-LABEL: @joined_rows
// CHECK: graph.kernel "slice"
// CHECK: graph.kernel "reduce"
// CHECK-NOT: graph.slice
// CHECK: return
module attributes {graph.symbols = [{name = "h", min = 4, opt = 64, max = 512, divisor = 1}, {name = "w", min = 4, opt = 64, max = 512, divisor = 1}]} {
  func.func @joined_rows(%x: tensor<8x?x?xf32, affine_map<()[s0, s1] -> (8, s0, s1)>>) -> tensor<2xf32> {
    %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 3)>, steps = array<i64: 1, 1, 1>} : (tensor<8x?x?xf32, affine_map<()[s0, s1] -> (8, s0, s1)>>) -> tensor<8x?x?xf32, affine_map<()[s0, s1] -> (8, s0, s1 - 3)>>
    %1 = graph.reshape %0 : (tensor<8x?x?xf32, affine_map<()[s0, s1] -> (8, s0, s1 - 3)>>) -> tensor<2x?xf32, affine_map<()[s0, s1] -> (2, s0 * s1 * 4 - s0 * 12)>>
    %2 = graph.reduce sum %1 {axes = array<i64: 1>} : (tensor<2x?xf32, affine_map<()[s0, s1] -> (2, s0 * s1 * 4 - s0 * 12)>>) -> tensor<2xf32>
    return %2 : tensor<2xf32>
  }
}

// -----

// Each second element is a run of equal steps where the width is even, as it is at the sizes to optimize for.
// CHECK-LABEL: @open_steps
// CHECK: graph.kernel "slice"
// CHECK: graph.kernel "normalize"
// CHECK-NOT: graph.slice
// CHECK: return
module attributes {graph.symbols = [{name = "h", min = 4, opt = 64, max = 512, divisor = 1}, {name = "w", min = 4, opt = 64, max = 512, divisor = 1}]} {
  func.func @open_steps(%x: tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, (s1 + 1) floordiv 2)>> {
    %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 2>} : (tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, (s1 + 1) floordiv 2)>>
    %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, (s1 + 1) floordiv 2)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, (s1 + 1) floordiv 2)>>
    return %1 : tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, (s1 + 1) floordiv 2)>>
  }
}

// -----

// CHECK-LABEL: @open_but_few
// CHECK-NOT: graph.kernel "slice"
// CHECK: graph.kernel "normalize"
// CHECK: return
module attributes {graph.symbols = [{name = "h", min = 4, opt = 8, max = 512, divisor = 1}, {name = "w", min = 4, opt = 8, max = 512, divisor = 1}]} {
  func.func @open_but_few(%x: tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>> {
    %0 = graph.slice %x {starts = affine_map<() -> (0, 0, 0, 3)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>>
    %1 = graph.normalize %0 {axes = array<i64: 2, 3>, epsilon = 1.0e-5 : f64} : (tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>>) -> tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>>
    return %1 : tensor<1x32x?x?xf32, affine_map<()[s0, s1] -> (1, 32, s0, s1 - 3)>>
  }
}

// -----

// Windows that slide by one read each element several times: what lays channels side by side is stored, not what moves channels
// behind it where results are stored along the rows again.
// CHECK-LABEL: @pool_of_shuffle
// CHECK: graph.kernel "transpose"
// CHECK: permutation = array<i64: 0, 1, 3, 4, 2>
// CHECK: graph.kernel "pool"
// CHECK-NOT: permutation = array<i64: 0, 1, 3, 4, 2>
// CHECK: return
// SPARSE-LABEL: @pool_of_shuffle
// SPARSE-COUNT-1: graph.kernel
// SPARSE-NOT: graph.kernel
// SPARSE: return
func.func @pool_of_shuffle(%x: tensor<1x4x4x25x28xf32>) -> tensor<1x4x25x112xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 1, 3, 4, 2>} : (tensor<1x4x4x25x28xf32>) -> tensor<1x4x25x28x4xf32>
  %1 = graph.reshape %0 : (tensor<1x4x25x28x4xf32>) -> tensor<1x4x25x112xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x4x25x112xf32>) -> tensor<1x25x112x4xf32>
  %3 = graph.pool average %2 {channels_last, dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x25x112x4xf32>) -> tensor<1x25x112x4xf32>
  %4 = graph.transpose %3 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x25x112x4xf32>) -> tensor<1x4x25x112xf32>
  return %4 : tensor<1x4x25x112xf32>
}

// -----

// Longer steps may undo it.
// CHECK-LABEL: @pool_by_steps
// CHECK-COUNT-1: graph.kernel
// CHECK-NOT: graph.kernel
// CHECK: return
func.func @pool_by_steps(%x: tensor<1x4x4x25x28xf32>) -> tensor<1x4x12x56xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 1, 3, 4, 2>} : (tensor<1x4x4x25x28xf32>) -> tensor<1x4x25x28x4xf32>
  %1 = graph.reshape %0 : (tensor<1x4x25x28x4xf32>) -> tensor<1x4x25x112xf32>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x4x25x112xf32>) -> tensor<1x25x112x4xf32>
  %3 = graph.pool average %2 {channels_last, dilations = array<i64: 1, 1>, kernel = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x25x112x4xf32>) -> tensor<1x12x56x4xf32>
  %4 = graph.transpose %3 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x12x56x4xf32>) -> tensor<1x4x12x56xf32>
  return %4 : tensor<1x4x12x56xf32>
}
